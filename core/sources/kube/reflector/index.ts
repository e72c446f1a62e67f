export type { BackoffOptions } from './backoff.js'
export { Reflector, type ReflectorOptions } from './reflector.js'
export { type EventType, type KubeObject, type ObjectHandler, pathOf, type Resource, ruleOf } from './resource.js'
export { defaultTiming, type ReflectorTiming } from './timing.js'
