export {
  endpointPath,
  type Family,
  globalv1,
  KpngError,
  type Log,
  localv1,
  servicePath,
  silentLog,
  toGoJson,
} from '@kpng/api'
export { parseAddresses } from './address.js'
export type {
  Backend,
  BackendFeatures,
  Changes,
  FrontendAddress,
  FrontendKind,
  HeldFrontend,
  NodeView,
  ObservationListener,
  Observations,
  OpenConnection,
  PacketCounts,
  Protocol,
  Runner,
  ServiceChange,
  ServiceEndpoints,
  ServicePortConnections,
  ServicePortTraffic,
  SyncStep,
  Timeline,
  Trigger,
} from './backend.js'
export type {
  ChangeSet,
  ChangeSetRequest,
  ChangeSetSource,
} from './change-set.js'
export type { ConnectionRecord } from './connection-record.js'
export { changeSetsOverGrpc } from './grpc/change-sets.js'
export { operationsOf, type StreamOptions } from './grpc/connect.js'
export { type ExplainOptions, explainOverGrpc } from './grpc/explain.js'
export type { Operations } from './grpc/known-state.js'
export { sourceHealthService } from './grpc/server-staleness.js'
export { jsonLines, servicesInOrder } from './json-lines.js'
export { type TextLogOptions, textLog } from './log.js'
export { NamedEndpoints, NodeState } from './node-state.js'
export {
  type ArgumentOptions,
  type ClientOptions,
  defaultApi,
  defaultNodeName,
  milliseconds,
  optionsFromArguments,
  wholeNumber,
} from './options.js'
export { endpointsOfPort, hasEndpoints, type PortEndpoint, protocolOf, type Scopes, scopesOf } from './ports.js'
export { type RunOptions, run, watch } from './run.js'
export { type Clock, type RunnerOptions, runBackend, type SyncReport } from './runner.js'
export { SourceStatus, staleAfterMs, WatchStatus } from './source-status.js'
export { pause, stopOnSignals } from './stop.js'
export { asStep, type StepAttributes } from './sync-step.js'
export { readTlsFiles, type TlsFiles, type TlsMaterial } from './tls.js'
