/** The kinds a Service proxy reads, in `k8s.io/api/core/v1`. */
export const serviceTypes = `
object Service: A name for a set of pods, and the virtual addresses and ports that a proxy serves for them.
  spec ServiceSpec #2 | What the Service should do.
  status ServiceStatus #3 | What was last seen of it; filled in by the system.
ServiceSpec: What a Service should do.
  ports []ServicePort #1 merge=port map=port,protocol | The ports this Service exposes.
  selector {}string #2 atomic | Traffic goes to the pods with these labels. Empty: somebody else manages the endpoints.
  clusterIP string #3 | The virtual address, usually assigned by the server; None makes a headless Service. It cannot be changed.
  clusterIPs []string #18 | The virtual addresses, at most one of each IP family; the first equals clusterIP.
  type string #4 | ClusterIP, NodePort, LoadBalancer or ExternalName.
  externalIPs []string #5 | Further addresses whose traffic nodes accept for this Service.
  sessionAffinity string #7 | None, or ClientIP to keep a client at one endpoint.
  loadBalancerIP string #8 | Deprecated: the address to ask the load balancer for.
  loadBalancerSourceRanges []string #9 | The client addresses that may use the load balancer.
  externalName string #10 | The DNS name an ExternalName Service stands for.
  externalTrafficPolicy string #11 | Cluster, or Local to use only endpoints of the receiving node and keep the client's address.
  healthCheckNodePort int32 #12 | The port on which nodes tell a load balancer whether they have endpoints.
  publishNotReadyAddresses boolean #13 | True to treat endpoints as ready even when their pods are not.
  sessionAffinityConfig SessionAffinityConfig #14 | Settings of the session affinity.
  ipFamilies []string #19 | The IP families of this Service, in order: IPv4, IPv6.
  ipFamilyPolicy string #17 | SingleStack, PreferDualStack or RequireDualStack.
  allocateLoadBalancerNodePorts boolean #20 | False: a LoadBalancer Service gets no node ports.
  loadBalancerClass string #21 | The load-balancer implementation this Service belongs to.
  internalTrafficPolicy string #22 | Cluster, or Local to use only endpoints of the client's node.
  trafficDistribution string #23 | PreferSameZone, PreferSameNode or PreferClose: which endpoints are preferred.
ServicePort: One port of a Service.
  name string #1 | Unique in the Service; needed when there are several ports.
  protocol string #2 =TCP | TCP, UDP or SCTP.
  appProtocol string #6 | A hint on the protocol spoken on this port.
  port int32! #3 | The port the Service exposes.
  targetPort IntOrString #4 | Number or name of the port on the pods; default: the value of port.
  nodePort int32 #5 | The port on each node, for NodePort and LoadBalancer.
SessionAffinityConfig: Settings of the session affinity.
  clientIP ClientIPConfig #1 | Settings of ClientIP.
ClientIPConfig: Settings of ClientIP session affinity.
  timeoutSeconds int32 #1 | Seconds a client sticks to its endpoint; default 10800 (3 hours).
ServiceStatus: What was last seen of a Service.
  loadBalancer LoadBalancerStatus #1 | The load balancer, if there is one.
  conditions []Condition #2 merge=type map=type | The current conditions.
LoadBalancerStatus: The state of a load balancer.
  ingress []LoadBalancerIngress #1 | Where the load balancer receives traffic.
LoadBalancerIngress: One point where a load balancer receives traffic.
  ip string #1 | Its address.
  hostname string #2 | Its DNS name.
  ipMode string #3 | VIP: delivered with the load balancer's address; Proxy: with the node's or pod's.
  ports []PortStatus #4 | The state of its ports.
PortStatus: The state of one port of a load balancer.
  port int32! #1 | The port.
  protocol string! #2 | TCP, UDP or SCTP.
  error string #3 | What is wrong with it.
object Endpoints: The addresses that implement a Service. Superseded by EndpointSlice.
  subsets []EndpointSubset #2 | Groups of addresses that have the same ports.
EndpointSubset: Addresses that have the same ports.
  addresses []EndpointAddress #1 | Those that are ready.
  notReadyAddresses []EndpointAddress #2 | Those that are not.
  ports []EndpointPort #3 | The ports.
EndpointAddress: One address.
  ip string! #1 | The address.
  hostname string #3 | Its host name.
  nodeName string #4 | The node it is on.
  targetRef ObjectReference #2 | The object behind it.
EndpointPort: One port.
  name string #1 | The name of the Service port.
  port int32! #2 | The number.
  protocol string #3 | TCP, UDP or SCTP.
  appProtocol string #4 | A hint on the protocol spoken.
ObjectReference: Points at another object.
  kind string #1 | Its kind.
  namespace string #2 | Its namespace.
  name string #3 | Its name.
  uid string #4 | Its UID.
  apiVersion string #5 | Its API version.
  resourceVersion string #6 | The version that is meant.
  fieldPath string #7 | The part of it that is meant.
object Namespace: A scope for names.
  spec NamespaceSpec #2 | What it should be.
  status NamespaceStatus #3 | What was last seen of it.
NamespaceSpec: What a namespace should be.
  finalizers []string #1 | Must be empty before the namespace is removed.
NamespaceStatus: What was last seen of a namespace.
  phase string #1 | Active or Terminating.
  conditions []NamespaceCondition #2 merge=type map=type | The current conditions.
NamespaceCondition: One aspect of a namespace.
  type string! #1 | Name of the condition.
  status string! #2 | True, False or Unknown.
  lastTransitionTime Time #4 | When the status last changed.
  reason string #5 | A word that programs can match.
  message string #6 | A sentence for people.
object Event: Something that happened to an object.
  metadata ObjectMeta! #1 | Names, labels and life cycle.
  involvedObject ObjectReference! #2 | The object it happened to.
  reason string #3 | A word that programs can match.
  message string #4 | A sentence for people.
  source EventSource #5 | Who reports it.
  firstTimestamp Time #6 | When it was first seen.
  lastTimestamp Time #7 | When it was last seen.
  count int32 #8 | How often it was seen.
  type string #9 | Normal or Warning.
  eventTime MicroTime #10 | When it was first seen, exactly.
  series EventSeries #11 | The series this belongs to.
  action string #12 | What was done or failed.
  related ObjectReference #13 | A second object.
  reportingComponent string #14 | The controller that reports it.
  reportingInstance string #15 | The instance of that controller.
EventSource: Who reports an event.
  component string #1 | The component.
  host string #2 | The node it runs on.
EventSeries: An event that repeats.
  count int32 #1 | How often.
  lastObservedTime MicroTime #2 | When it was last seen.
`
