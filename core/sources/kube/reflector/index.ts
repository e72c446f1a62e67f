export { type KubeObject, namespaceOf } from './known-objects.js'
export { type Batch, batches, type EventType, type ObjectEvent, type ReflectorOptions } from './reflector.js'
export type { Resource } from './resource.js'
export { type BackoffOptions, defaultTiming, type ReflectorTiming } from './timing.js'
