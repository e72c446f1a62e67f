export {
  type ConfiguredCertificates,
  type ConnectionOptions,
  configuredCertificates,
  type KubeConnection,
  type KubeRequest,
  type KubeResponse,
  loadConnection,
  type OnRequest,
  type RequestReport,
} from './client/index.js'
export { type ListedCluster, type ListedService, listCluster, listed, type Unread } from './inspect-cluster.js'
export { askRights, askServer, type Right, readKubeProxyConfigMap, type ServerAnswer } from './inspect-server.js'
export { inspectService, kubernetesFacts, ObjectSet, readObjects, whyUnread } from './inspect-service.js'
export { defaultTiming, type EventType, type ReflectorTiming } from './reflector/index.js'
export { type KubeResource, type WatchKubeOptions, watchKube } from './source.js'
