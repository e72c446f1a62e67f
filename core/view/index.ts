export { explainService, serviceFacts, serviceFactsOf } from './explain.js'
export { type NodeChange, type NodeWatchOptions, servicesOf, View } from './node-watch.js'
export { SharedWork, Turns, Watch, type Work } from './schedule.js'
export {
  type Availability,
  type LeftOutEndpoint,
  type NodeTopology,
  Scope,
  type SelectedEndpoint,
  type Selection,
  selectEndpoints,
} from './selection.js'
export type { EndpointChanges, ServiceChange } from './service-change.js'
export type { CommonService, NodeEndpoint, NodeService } from './service-view.js'
