/** `k8s.io/api/discovery/v1`. */
export const discoveryTypes = `
object EndpointSlice: Some of the endpoints of a Service.
  metadata ObjectMeta #1 | Names, labels and life cycle; the label kubernetes.io/service-name names the Service.
  addressType string! #4 | IPv4, IPv6 or FQDN. It cannot be changed.
  endpoints []Endpoint! #2 | The endpoints, at most 1000.
  ports []EndpointPort #3 | The ports that each endpoint of this slice has.
Endpoint: One backend of a Service.
  addresses []string! #1 set | Its addresses; consumers use the first.
  conditions EndpointConditions #2 | Its state.
  hostname string #3 | Its host name.
  targetRef ObjectReference #4 | The object behind it.
  deprecatedTopology {}string #5 atomic | Deprecated, of v1beta1.
  nodeName string #6 | The node it is on.
  zone string #7 | The zone it is in.
  hints EndpointHints #8 | Who should use it.
EndpointConditions: The state of an endpoint.
  ready boolean #1 | It takes traffic; unset means true.
  serving boolean #2 | As ready, also while it terminates; unset means ready.
  terminating boolean #3 | It is on its way out; unset means false.
EndpointHints: Who should use an endpoint.
  forZones []ForZone #1 | The zones.
  forNodes []ForNode #2 | The nodes.
ForZone: A zone that should use an endpoint.
  name string! #1 | The zone.
ForNode: A node that should use an endpoint.
  name string! #1 | The node.
EndpointPort: One port of a slice.
  name string #1 | The name of the Service port.
  protocol string #2 | TCP, UDP or SCTP.
  port int32 #3 | The number; unset means all ports.
  appProtocol string #4 | A hint on the protocol spoken.
`

/** `k8s.io/api/networking/v1`. */
export const networkingTypes = `
object ServiceCIDR: A range of addresses that cluster IPs are assigned from.
  spec ServiceCIDRSpec #2 | The ranges.
  status ServiceCIDRStatus #3 | What was last seen of it.
ServiceCIDRSpec: Ranges that cluster IPs are assigned from.
  cidrs []string #1 | One range, or one of each IP family. They cannot be changed.
ServiceCIDRStatus: What was last seen of a ServiceCIDR.
  conditions []Condition #1 merge=type map=type | The current conditions.
`

/** `k8s.io/api/events/v1`. */
export const eventsTypes = `
object Event: Something that happened to an object.
  eventTime MicroTime! #2 | When it was first seen.
  series EventSeries #3 | The series this belongs to.
  reportingController string #4 | The controller that reports it.
  reportingInstance string #5 | The instance of that controller.
  action string #6 | What was done or failed.
  reason string #7 | A word that programs can match.
  regarding ObjectReference #8 | The object it happened to.
  related ObjectReference #9 | A second object.
  note string #10 | A sentence for people.
  type string #11 | Normal or Warning.
  deprecatedSource EventSource #12
  deprecatedFirstTimestamp Time #13
  deprecatedLastTimestamp Time #14
  deprecatedCount int32 #15
EventSeries: An event that repeats.
  count int32! #1 | How often.
  lastObservedTime MicroTime! #2 | When it was last seen.
`

/** `k8s.io/api/apps/v1`. */
export const appsTypes = `
object Deployment: Keeps a number of equal pods running.
  spec DeploymentSpec #2 | What it should be.
  status DeploymentStatus #3 | What was last seen of it.
DeploymentSpec: What a Deployment should be.
  replicas int32 #1 | How many pods; default 1.
  selector LabelSelector! #2 | The pods that belong to it.
  template PodTemplateSpec! #3 | What the pods look like.
  strategy DeploymentStrategy #4 | How pods are replaced.
  minReadySeconds int32 #5 | Seconds a pod must be ready to count as available.
  revisionHistoryLimit int32 #6 | How many old revisions are kept.
  paused boolean #7 | True: nothing is changed.
  progressDeadlineSeconds int32 #9 | Seconds until no progress is reported as failure.
DeploymentStrategy: How pods are replaced.
  type string #1 | Recreate or RollingUpdate.
  rollingUpdate RollingUpdateDeployment #2 | Settings of RollingUpdate.
RollingUpdateDeployment: Settings of RollingUpdate.
  maxUnavailable IntOrString #1 | How many pods may be missing.
  maxSurge IntOrString #2 | How many pods may be too many.
DeploymentStatus: What was last seen of a Deployment.
  observedGeneration int64 #1 | The generation this was worked out from.
  replicas int32 #2 | Pods that exist.
  updatedReplicas int32 #3 | Pods that match the template.
  readyReplicas int32 #7 | Pods that are ready.
  availableReplicas int32 #4 | Pods that were ready long enough.
  unavailableReplicas int32 #5 | Pods that are missing.
  terminatingReplicas int32 #9 | Pods that are going away.
  conditions []DeploymentCondition #6 merge=type map=type | The current conditions.
  collisionCount int32 #8
DeploymentCondition: One aspect of a Deployment.
  type string! #1 | Name of the condition.
  status string! #2 | True, False or Unknown.
  lastUpdateTime Time #6 | When this was last reported.
  lastTransitionTime Time #7 | When the status last changed.
  reason string #4 | A word that programs can match.
  message string #5 | A sentence for people.
`

/** `k8s.io/api/autoscaling/v1`. */
export const autoscalingTypes = `
object Scale: How many pods a controller should keep.
  spec ScaleSpec #2 | What it should be.
  status ScaleStatus #3 | What was last seen of it.
ScaleSpec: What a scale should be.
  replicas int32 #1 | How many pods.
ScaleStatus: What was last seen of a scale.
  replicas int32! #1 | How many pods there are.
  selector string #2 | The pods that are counted.
`
