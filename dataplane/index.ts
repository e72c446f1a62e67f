export {
  type BackendState,
  backendOf,
  type DataPlane,
  type FrontendBackend,
  type Host,
  type Leftovers,
  type Needs,
  type SkeletonOptions,
  type SteppedBackend,
  type Wanted,
  type Written,
} from './backend.js'
export { DriftWatch, type DriftWatchOptions } from './drift-watch.js'
export { briefly, FollowUp } from './follow-up.js'
export {
  type Audience,
  endpointKey,
  type Frontend,
  type FrontendEndpoint,
  frontendId,
  isWholeAddress,
  sameFrontend,
  servicePortName,
} from './frontend.js'
export { type FrontendChange, type FrontendChanges, FrontendTable } from './frontend-table.js'
export { isInside, type Machine, type NodeFacts, nodeFacts } from './node.js'
export { nodePortHosts, wildcards } from './node-port-hosts.js'
export type { ProblemKind, ServiceProblem } from './port-endpoints.js'
export {
  allFeatures,
  type Client,
  type Connection,
  clientOf,
  iptablesModeFeatures,
  isMasqueraded,
  isSupported,
  type Route,
  type RouteFeatures,
  type RouteOptions,
  routeOf,
  routeThrough,
} from './route.js'
export {
  checkedMasqueradeBit,
  type DataplaneOptions,
  type DataplaneSettings,
  type DetectLocal,
  dataplaneSettings,
} from './settings.js'
export { type FlowSelection, StaleFlowRemoval, type StaleFlowRemovalOptions } from './stale-flow-removal.js'
export { allFlowChecks, type Flow, type FlowCheck, flowChecks, staleness } from './stale-flows.js'
