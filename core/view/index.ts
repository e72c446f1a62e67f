export type { Batch, ChangeSet, Timeline, Trigger, Watch } from './change-set.js'
export { GlobalWatch, type GlobalWatchOptions } from './global-watch.js'
export type { DeleteItem, SetItem } from './items.js'
export { nextChangeSet } from './next.js'
export { NodeWatch, type NodeWatchOptions } from './node-watch.js'
export { targetPortOf } from './ports.js'
export {
  type Availability,
  type LeftOutEndpoint,
  type NodeTopology,
  type Reason,
  Scope,
  type SelectedEndpoint,
  type Selection,
  selectEndpoints,
} from './selection.js'
