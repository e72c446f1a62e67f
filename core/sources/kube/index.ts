export {
  type ConnectionOptions,
  type KubeConnection,
  type KubeRequest,
  type KubeResponse,
  loadConnection,
  type OnRequest,
  podNamespace,
  type RequestReport,
} from './credentials/index.js'
export type { KubeResource } from './kinds.js'
export {
  defaultTiming,
  type EventType,
  type KubeObject,
  type ObjectHandler,
  Reflector,
  type ReflectorOptions,
  type ReflectorTiming,
  type Resource,
} from './reflector/index.js'
export { type KubeCounters, type WatchKubeOptions, watchKube } from './source.js'
