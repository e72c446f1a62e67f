export {
  type Audience,
  endpointKey,
  type Frontend,
  type FrontendEndpoint,
  frontendId,
  isWholeAddress,
  sameFrontend,
} from './frontend.js'
export { type FrontendBackend, type FrontendChange, type FrontendChanges, FrontendTable } from './frontend-table.js'
export { type InterfaceAddress, interfaceAddresses, machineAddresses, nodePortHosts, wildcards } from './machine.js'
export { isInside, isOnNode, type Machine, type NodeFacts, nodeFacts } from './node.js'
export { type DataplaneOptions, type DataplaneSettings, type DetectLocal, dataplaneSettings } from './settings.js'
export { allFlowChecks, type Flow, type FlowCheck, flowChecks, staleness } from './stale-flows.js'
export { isLoopback, type UnsafeKind, unsafeKindOf } from './unsafe-address.js'
