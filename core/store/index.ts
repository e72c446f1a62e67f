export { ChangeLog } from './change-log.js'
export { followStore } from './follow.js'
export type { Bookmark, Changed, ChangeRange, Timeline, Trigger } from './history.js'
export {
  type ClusterState,
  type Conditions,
  conditionsOf,
  type EndpointPort,
  type EndpointRecord,
  type EndpointSource,
  type Hints,
  isBetter,
  none,
  reuseEndpoints,
  type ServiceEntry,
  sameMessage,
  sameStrings,
} from './records.js'
export { Store, type StoreOptions } from './store.js'
export type { Kind, Transaction } from './transaction.js'
