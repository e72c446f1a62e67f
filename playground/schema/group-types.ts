/** `k8s.io/api/discovery/v1`. */
export const discoveryTypes = `
EndpointSlice: Some of the endpoints of a Service.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle; the label kubernetes.io/service-name names the Service.
  addressType string! | IPv4, IPv6 or FQDN. It cannot be changed.
  endpoints []Endpoint! | The endpoints, at most 1000.
  ports []EndpointPort | The ports that each endpoint of this slice has.
Endpoint: One backend of a Service.
  addresses []string! set | Its addresses; consumers use the first.
  conditions EndpointConditions | Its state.
  hostname string | Its host name.
  targetRef ObjectReference | The object behind it.
  deprecatedTopology {}string atomic | Deprecated, of v1beta1.
  nodeName string | The node it is on.
  zone string | The zone it is in.
  hints EndpointHints | Who should use it.
EndpointConditions: The state of an endpoint.
  ready boolean | It takes traffic; unset means true.
  serving boolean | As ready, also while it terminates; unset means ready.
  terminating boolean | It is on its way out; unset means false.
EndpointHints: Who should use an endpoint.
  forZones []ForZone | The zones.
  forNodes []ForNode | The nodes.
ForZone: A zone that should use an endpoint.
  name string! | The zone.
ForNode: A node that should use an endpoint.
  name string! | The node.
EndpointPort: One port of a slice.
  name string | The name of the Service port.
  protocol string | TCP, UDP or SCTP.
  port int32 | The number; unset means all ports.
  appProtocol string | A hint on the protocol spoken.
`

/** `k8s.io/api/networking/v1`. */
export const networkingTypes = `
ServiceCIDR: A range of addresses that cluster IPs are assigned from.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  spec ServiceCIDRSpec | The ranges.
  status ServiceCIDRStatus | What was last seen of it.
ServiceCIDRSpec: Ranges that cluster IPs are assigned from.
  cidrs []string | One range, or one of each IP family. They cannot be changed.
ServiceCIDRStatus: What was last seen of a ServiceCIDR.
  conditions []Condition merge=type map=type | The current conditions.
`

/** `k8s.io/api/events/v1`. */
export const eventsTypes = `
Event: Something that happened to an object.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  eventTime MicroTime! | When it was first seen.
  series EventSeries | The series this belongs to.
  reportingController string | The controller that reports it.
  reportingInstance string | The instance of that controller.
  action string | What was done or failed.
  reason string | A word that programs can match.
  regarding ObjectReference | The object it happened to.
  related ObjectReference | A second object.
  note string | A sentence for people.
  type string | Normal or Warning.
  deprecatedSource EventSource
  deprecatedFirstTimestamp Time
  deprecatedLastTimestamp Time
  deprecatedCount int32
EventSeries: An event that repeats.
  count int32! | How often.
  lastObservedTime MicroTime! | When it was last seen.
`

/** `k8s.io/api/apps/v1`. */
export const appsTypes = `
Deployment: Keeps a number of equal pods running.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  spec DeploymentSpec | What it should be.
  status DeploymentStatus | What was last seen of it.
DeploymentSpec: What a Deployment should be.
  replicas int32 | How many pods; default 1.
  selector LabelSelector! | The pods that belong to it.
  template PodTemplateSpec! | What the pods look like.
  strategy DeploymentStrategy | How pods are replaced.
  minReadySeconds int32 | Seconds a pod must be ready to count as available.
  revisionHistoryLimit int32 | How many old revisions are kept.
  paused boolean | True: nothing is changed.
  progressDeadlineSeconds int32 | Seconds until no progress is reported as failure.
DeploymentStrategy: How pods are replaced.
  type string | Recreate or RollingUpdate.
  rollingUpdate RollingUpdateDeployment | Settings of RollingUpdate.
RollingUpdateDeployment: Settings of RollingUpdate.
  maxUnavailable IntOrString | How many pods may be missing.
  maxSurge IntOrString | How many pods may be too many.
DeploymentStatus: What was last seen of a Deployment.
  observedGeneration int64 | The generation this was worked out from.
  replicas int32 | Pods that exist.
  updatedReplicas int32 | Pods that match the template.
  readyReplicas int32 | Pods that are ready.
  availableReplicas int32 | Pods that were ready long enough.
  unavailableReplicas int32 | Pods that are missing.
  terminatingReplicas int32 | Pods that are going away.
  conditions []DeploymentCondition merge=type map=type | The current conditions.
  collisionCount int32
DeploymentCondition: One aspect of a Deployment.
  type string! | Name of the condition.
  status string! | True, False or Unknown.
  lastUpdateTime Time | When this was last reported.
  lastTransitionTime Time | When the status last changed.
  reason string | A word that programs can match.
  message string | A sentence for people.
`

/** `k8s.io/api/autoscaling/v1`. */
export const autoscalingTypes = `
Scale: How many pods a controller should keep.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  spec ScaleSpec | What it should be.
  status ScaleStatus | What was last seen of it.
ScaleSpec: What a scale should be.
  replicas int32 | How many pods.
ScaleStatus: What was last seen of a scale.
  replicas int32! | How many pods there are.
  selector string | The pods that are counted.
`
