export { type ConfiguredCertificates, configuredCertificates } from './certificates.js'
export {
  type ConnectionOptions,
  type KubeConnection,
  type KubeRequest,
  type KubeResponse,
  loadConnection,
  type OnRequest,
  type RequestReport,
} from './connection.js'
export { readBody } from './errors.js'
