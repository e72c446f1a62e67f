export {
  endpointsFromKubernetes,
  type Intern,
  internTable,
  type SliceEndpoints,
  serviceNameLabel,
} from './endpoint-slice.js'
export type { Report } from './fields.js'
export { protocolOf } from './fields.js'
export { type KeptKeys, type KeyFilter, keptKeys, keyFilter } from './globs.js'
export { nodeFromKubernetes } from './node.js'
export { serviceFromKubernetes } from './service.js'
export { serviceCidrFromKubernetes } from './service-cidr.js'
export { headlessLabel, type ProxySelection, selectionForProxy, serviceProxyNameLabel } from './service-proxy-name.js'
