export { ChangeSet, type CommonState, type Timeline, type Trigger, type WholeState } from './change-set.js'
export { explainService, nodeViewOf } from './explain.js'
export type { GlobalWatchOptions } from './global-watch.js'
export type { Batch, DeleteItem, SetItem } from './items.js'
export type { NodeWatchOptions } from './node-watch.js'
export {
  type Availability,
  type LeftOutEndpoint,
  type NodeTopology,
  Scope,
  type SelectedEndpoint,
  type Selection,
  selectEndpoints,
} from './selection.js'
export { serviceFacts, serviceFactsOf } from './service-facts.js'
export { View } from './view.js'
export type { Turns, Watch } from './watch.js'
export { SharedWork, type Work } from './work.js'
