import type { Family } from '@kpng/api'
import type { KubeObject, Optional } from './types.js'

export type IpFamily = Family
export type Protocol = 'TCP' | 'UDP' | 'SCTP'

export interface ServicePort
  extends Optional<{
    name: string
    protocol: Protocol
    appProtocol: string
    targetPort: number | string
    nodePort: number
  }> {
  port: number
}

export type ServiceSpec = Optional<{
  type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'
  clusterIP: string
  clusterIPs: string[]
  ports: ServicePort[]
  selector: Record<string, string>
  externalIPs: string[]
  externalName: string
  sessionAffinity: string
  sessionAffinityConfig: { clientIP?: { timeoutSeconds?: number } }
  ipFamilies: IpFamily[]
  ipFamilyPolicy: 'SingleStack' | 'PreferDualStack' | 'RequireDualStack'
  internalTrafficPolicy: string
  externalTrafficPolicy: string
  healthCheckNodePort: number
  allocateLoadBalancerNodePorts: boolean
  loadBalancerIP: string
  loadBalancerClass: string
  loadBalancerSourceRanges: string[]
  publishNotReadyAddresses: boolean
  trafficDistribution: string
}>

export interface LoadBalancerIngress {
  ip?: string
  hostname?: string
  ipMode?: string
}

export interface Service extends KubeObject {
  spec: ServiceSpec
  status?: { loadBalancer?: { ingress?: LoadBalancerIngress[] } }
}

export interface ServiceCidr extends KubeObject {
  spec: { cidrs?: string[] }
}

export interface Condition
  extends Optional<{
    reason: string
    message: string
    lastTransitionTime: string | null
    lastProbeTime: string | null
    lastHeartbeatTime: string | null
    observedGeneration: number
  }> {
  type: string
  status: 'True' | 'False' | 'Unknown'
}

export interface ContainerPort extends Optional<{ name: string; protocol: Protocol; hostPort: number }> {
  containerPort: number
}

export interface Container extends Optional<{ image: string; ports: ContainerPort[]; command: string[] }> {
  name: string
}

export type PodSpec = Optional<{
  nodeName: string
  nodeSelector: Record<string, string>
  containers: Container[]
  terminationGracePeriodSeconds: number
  readinessGates: { conditionType: string }[]
}>

export interface ContainerStatus {
  name: string
  ready: boolean
  restartCount: number
  image: string
  imageID: string
  started: boolean
  state: Record<string, { startedAt?: string; reason?: string; message?: string; exitCode?: number }>
}

export type PodStatus = Optional<{
  phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed'
  reason: string
  message: string
  conditions: Condition[]
  podIP: string
  podIPs: { ip: string }[]
  hostIP: string
  hostIPs: { ip: string }[]
  startTime: string
  qosClass: string
  containerStatuses: ContainerStatus[]
}>

export interface Pod extends KubeObject {
  spec: PodSpec
  status?: PodStatus
}

export interface ObjectReference
  extends Optional<{
    apiVersion: string
    kind: string
    namespace: string
    name: string
    uid: string
    resourceVersion: string
    fieldPath: string
  }> {}

export type EndpointConditions = Optional<{ ready: boolean; serving: boolean; terminating: boolean }>

export interface Endpoint
  extends Optional<{
    conditions: EndpointConditions
    hostname: string
    nodeName: string
    zone: string
    targetRef: ObjectReference
    hints: { forZones?: { name: string }[]; forNodes?: { name: string }[] }
  }> {
  addresses: string[]
}

export type SlicePort = Optional<{ name: string; port: number; protocol: Protocol; appProtocol: string }>

export interface EndpointSlice extends KubeObject {
  addressType: IpFamily | 'FQDN'
  endpoints: Endpoint[]
  ports?: SlicePort[]
}

export type EndpointAddress = Optional<{ hostname: string; nodeName: string; targetRef: ObjectReference }> & {
  ip: string
}

export interface EndpointSubset {
  addresses?: EndpointAddress[]
  notReadyAddresses?: EndpointAddress[]
  ports?: SlicePort[]
}

export interface Endpoints extends KubeObject {
  subsets?: EndpointSubset[]
}

export interface Taint {
  key: string
  value?: string
  effect: string
}

export interface Node extends KubeObject {
  spec: Optional<{ podCIDR: string; podCIDRs: string[]; taints: Taint[]; unschedulable: boolean; providerID: string }>
  status?: Optional<{
    addresses: { type: string; address: string }[]
    conditions: Condition[]
    capacity: Record<string, string>
    allocatable: Record<string, string>
    nodeInfo: Record<string, string>
  }>
}

export interface Namespace extends KubeObject {
  spec: { finalizers?: string[] }
  status?: { phase?: string; conditions?: Condition[] }
}

export interface KubeEvent extends KubeObject {
  involvedObject: ObjectReference
  reason?: string
  message?: string
  type?: string
  count?: number
  action?: string
  source?: { component?: string; host?: string }
  firstTimestamp?: string | null
  lastTimestamp?: string | null
  eventTime?: string | null
  series?: { count?: number; lastObservedTime?: string }
  related?: ObjectReference
  reportingComponent?: string
  reportingInstance?: string
}

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>
  /** In base64. */
  binaryData?: Record<string, string>
  immutable?: boolean
}

export interface Secret extends KubeObject {
  /** In base64. */
  data?: Record<string, string>
  stringData?: Record<string, string>
  type?: string
  immutable?: boolean
}

export interface ServiceAccount extends KubeObject {
  secrets?: ObjectReference[]
}

export interface Deployment extends KubeObject {
  spec: Optional<{
    replicas: number
    selector: { matchLabels?: Record<string, string>; matchExpressions?: unknown[] }
    template: { metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }; spec?: PodSpec }
    strategy: unknown
  }>
  status?: Optional<{
    replicas: number
    updatedReplicas: number
    readyReplicas: number
    availableReplicas: number
    unavailableReplicas: number
    observedGeneration: number
    conditions: Condition[]
  }>
}
