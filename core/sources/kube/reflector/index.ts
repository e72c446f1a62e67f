export { type Batch, batches, type EventType, type ObjectEvent, type ReflectorOptions } from './reflector.js'
export { type KubeObject, namespaceOf, type Resource } from './resource.js'
export { type BackoffOptions, defaultTiming, type ReflectorTiming } from './timing.js'
