export { defaultAffinitySeconds } from './affinity.js'
export {
  type AgentErrorAnswer,
  type AgentStatus,
  type ClientKind,
  type EndpointAnswer,
  type EndpointReason,
  type EndpointRow,
  type EndpointScope,
  type Explanation,
  endpointReasons,
  type FrontendAnswer,
  type FrontendRow,
  type HeldAnswer,
  type NodeHealth,
  type NodeRow,
  type NodeState,
  nodeHealthOf,
  type ProbeAnswer,
  type RouteAnswer,
  type RouteOutcome,
  type ServiceAnswer,
  type ServiceChangeAnswer,
  type ServiceRow,
  type SourceState,
  type SourceStatusAnswer,
  type SyncAnswer,
  sourceStateOf,
} from './agent.js'
export { changeSentence, type ServiceDifference } from './change-sentence.js'
export {
  type Diagnosis,
  type Finding,
  type Known,
  type KubernetesFacts,
  type KubernetesService,
  type Level,
  type OtherPod,
  type PodFacts,
  schemaVersion,
  type Verdict,
  verdicts,
} from './diagnosis.js'
export { bucketCountFor, Digest, digestBytes, isBucketCount, itemHash, placeOf } from './digest.js'
export { formatDuration, parseDuration } from './duration.js'
export { endpointBytes } from './endpoint-bytes.js'
export { fileAdvice, KpngError, type KpngErrorCode, messageOf } from './error.js'
export * as globalv1 from './gen/globalv1/api_pb.js'
export * as health from './gen/grpc/health/v1/health_pb.js'
export * as kpngv1 from './gen/kpng/v1/explain_pb.js'
export * as localv1 from './gen/localv1/api_pb.js'
export { toGoJson } from './go-json.js'
export {
  addressBits,
  boundsOf,
  bytesOfIp,
  type Cidr,
  CidrSet,
  type Family,
  families,
  familyOf,
  hostPort,
  type Ip,
  ipOfBytes,
  ipSetOf,
  ipsOf,
  ipv4Number,
  isLoopback,
  isPort,
  parseCidr,
  parseCidrs,
  parseIp,
  type UnsafeKind,
  unsafeKindOf,
} from './ip.js'
export { type LabelRequirement, type Labels, matchesLabels, parseLabelSelector } from './label-selector.js'
export { zoneLabel } from './labels.js'
export type {
  ConnectionsAnswer,
  LiveChanges,
  LiveConnection,
  LiveNode,
  LivePulse,
  LiveSample,
  LiveService,
  LiveSnapshot,
  LiveSync,
  SyncTimes,
} from './live.js'
export { type Log, type LogFields, OncePerMinute, silentLog } from './log.js'
export { nearestNames } from './nearest-names.js'
export {
  endpointPath,
  type GlobalPath,
  globalPath,
  isName,
  nameProblem,
  parseGlobalPath,
  serviceOfEndpointPath,
  servicePath,
} from './paths.js'
export { printable, printableLines } from './printable.js'
export { isSame } from './same.js'
