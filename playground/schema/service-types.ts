/** The kinds a Service proxy reads, in `k8s.io/api/core/v1`. */
export const serviceTypes = `
Service: A name for a set of pods, and the virtual addresses and ports that a proxy serves for them.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  spec ServiceSpec | What the Service should do.
  status ServiceStatus | What was last seen of it; filled in by the system.
ServiceSpec: What a Service should do.
  ports []ServicePort merge=port map=port,protocol | The ports this Service exposes.
  selector {}string atomic | Traffic goes to the pods with these labels. Empty: somebody else manages the endpoints.
  clusterIP string | The virtual address, usually assigned by the server; None makes a headless Service. It cannot be changed.
  clusterIPs []string | The virtual addresses, at most one of each IP family; the first equals clusterIP.
  type string | ClusterIP, NodePort, LoadBalancer or ExternalName.
  externalIPs []string | Further addresses whose traffic nodes accept for this Service.
  sessionAffinity string | None, or ClientIP to keep a client at one endpoint.
  loadBalancerIP string | Deprecated: the address to ask the load balancer for.
  loadBalancerSourceRanges []string | The client addresses that may use the load balancer.
  externalName string | The DNS name an ExternalName Service stands for.
  externalTrafficPolicy string | Cluster, or Local to use only endpoints of the receiving node and keep the client's address.
  healthCheckNodePort int32 | The port on which nodes tell a load balancer whether they have endpoints.
  publishNotReadyAddresses boolean | True to treat endpoints as ready even when their pods are not.
  sessionAffinityConfig SessionAffinityConfig | Settings of the session affinity.
  ipFamilies []string | The IP families of this Service, in order: IPv4, IPv6.
  ipFamilyPolicy string | SingleStack, PreferDualStack or RequireDualStack.
  allocateLoadBalancerNodePorts boolean | False: a LoadBalancer Service gets no node ports.
  loadBalancerClass string | The load-balancer implementation this Service belongs to.
  internalTrafficPolicy string | Cluster, or Local to use only endpoints of the client's node.
  trafficDistribution string | PreferSameZone, PreferSameNode or PreferClose: which endpoints are preferred.
ServicePort: One port of a Service.
  name string | Unique in the Service; needed when there are several ports.
  protocol string =TCP | TCP, UDP or SCTP.
  appProtocol string | A hint on the protocol spoken on this port.
  port int32! | The port the Service exposes.
  targetPort IntOrString | Number or name of the port on the pods; default: the value of port.
  nodePort int32 | The port on each node, for NodePort and LoadBalancer.
SessionAffinityConfig: Settings of the session affinity.
  clientIP ClientIPConfig | Settings of ClientIP.
ClientIPConfig: Settings of ClientIP session affinity.
  timeoutSeconds int32 | Seconds a client sticks to its endpoint; default 10800 (3 hours).
ServiceStatus: What was last seen of a Service.
  loadBalancer LoadBalancerStatus | The load balancer, if there is one.
  conditions []Condition merge=type map=type | The current conditions.
LoadBalancerStatus: The state of a load balancer.
  ingress []LoadBalancerIngress | Where the load balancer receives traffic.
LoadBalancerIngress: One point where a load balancer receives traffic.
  ip string | Its address.
  hostname string | Its DNS name.
  ipMode string | VIP: delivered with the load balancer's address; Proxy: with the node's or pod's.
  ports []PortStatus | The state of its ports.
PortStatus: The state of one port of a load balancer.
  port int32! | The port.
  protocol string! | TCP, UDP or SCTP.
  error string | What is wrong with it.
Endpoints: The addresses that implement a Service. Superseded by EndpointSlice.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  subsets []EndpointSubset | Groups of addresses that have the same ports.
EndpointSubset: Addresses that have the same ports.
  addresses []EndpointAddress | Those that are ready.
  notReadyAddresses []EndpointAddress | Those that are not.
  ports []EndpointPort | The ports.
EndpointAddress: One address.
  ip string! | The address.
  hostname string | Its host name.
  nodeName string | The node it is on.
  targetRef ObjectReference | The object behind it.
EndpointPort: One port.
  name string | The name of the Service port.
  port int32! | The number.
  protocol string | TCP, UDP or SCTP.
  appProtocol string | A hint on the protocol spoken.
ObjectReference: Points at another object.
  kind string | Its kind.
  namespace string | Its namespace.
  name string | Its name.
  uid string | Its UID.
  apiVersion string | Its API version.
  resourceVersion string | The version that is meant.
  fieldPath string | The part of it that is meant.
Namespace: A scope for names.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  spec NamespaceSpec | What it should be.
  status NamespaceStatus | What was last seen of it.
NamespaceSpec: What a namespace should be.
  finalizers []string | Must be empty before the namespace is removed.
NamespaceStatus: What was last seen of a namespace.
  phase string | Active or Terminating.
  conditions []NamespaceCondition merge=type map=type | The current conditions.
NamespaceCondition: One aspect of a namespace.
  type string! | Name of the condition.
  status string! | True, False or Unknown.
  lastTransitionTime Time | When the status last changed.
  reason string | A word that programs can match.
  message string | A sentence for people.
Event: Something that happened to an object.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta! | Names, labels and life cycle.
  involvedObject ObjectReference! | The object it happened to.
  reason string | A word that programs can match.
  message string | A sentence for people.
  source EventSource | Who reports it.
  firstTimestamp Time | When it was first seen.
  lastTimestamp Time | When it was last seen.
  count int32 | How often it was seen.
  type string | Normal or Warning.
  eventTime MicroTime | When it was first seen, exactly.
  series EventSeries | The series this belongs to.
  action string | What was done or failed.
  related ObjectReference | A second object.
  reportingComponent string | The controller that reports it.
  reportingInstance string | The instance of that controller.
EventSource: Who reports an event.
  component string | The component.
  host string | The node it runs on.
EventSeries: An event that repeats.
  count int32 | How often.
  lastObservedTime MicroTime | When it was last seen.
`
