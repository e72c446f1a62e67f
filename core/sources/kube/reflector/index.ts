export {
  type Batch,
  batches,
  type EventType,
  type KubeObject,
  namespaceOf,
  type ObjectEvent,
  type ReflectorOptions,
} from './reflector.js'
export type { Resource } from './resource.js'
export { type BackoffOptions, defaultTiming, type ReflectorTiming } from './timing.js'
