export type { Changed, ChangeRange, ServiceChange } from './change-log.js'
export { reuseEndpoints, sameMessage, sameStrings } from './equal.js'
export {
  type ClusterState,
  type Conditions,
  conditionsOf,
  type EndpointPort,
  type EndpointRecord,
  type EndpointSource,
  type Hints,
  none,
  type ServiceEntry,
} from './records.js'
export { Store, type StoreOptions } from './store.js'
export type { Kind, Transaction } from './transaction.js'
