/** Node, in `k8s.io/api/core/v1`. */
export const nodeTypes = `
Node: A machine that runs pods.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  spec NodeSpec | What it should be.
  status NodeStatus | What was last seen of it.
NodeSpec: What a node should be.
  podCIDR string | The range of its pods' addresses.
  podCIDRs []string merge set | The ranges of its pods' addresses, one of each IP family at most.
  providerID string | Its name at the cloud provider.
  unschedulable boolean | True: no new pods are scheduled to it.
  taints []Taint | What pods must tolerate to be scheduled to it.
  configSource object | Removed.
  externalID string | Deprecated.
Taint: Repels the pods that do not tolerate it.
  key string! | The name of the taint.
  value string | Its value.
  effect string! | NoSchedule, PreferNoSchedule or NoExecute.
  timeAdded Time | When it was added.
NodeStatus: What was last seen of a node.
  capacity {}Quantity | All its resources.
  allocatable {}Quantity | The resources that pods may use.
  phase string | Deprecated.
  conditions []NodeCondition merge=type map=type | The current conditions.
  addresses []NodeAddress merge=type map=type | Where it can be reached.
  daemonEndpoints NodeDaemonEndpoints | Ports of its daemons.
  nodeInfo NodeSystemInfo | Its system.
  images []ContainerImage | The images it has.
  volumesInUse []string | Volumes that are in use.
  volumesAttached []AttachedVolume | Volumes that are attached.
  config object | Removed.
  runtimeHandlers []NodeRuntimeHandler | The runtime handlers it has.
  features NodeFeatures | What its container runtime can do.
  declaredFeatures []string | Features the node declares.
NodeCondition: One aspect of a node.
  type string! | Name of the condition.
  status string! | True, False or Unknown.
  lastHeartbeatTime Time | When this was last reported.
  lastTransitionTime Time | When the status last changed.
  reason string | A word that programs can match.
  message string | A sentence for people.
NodeAddress: Where a node can be reached.
  type string! | Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.
  address string! | The address.
NodeDaemonEndpoints: Ports of a node's daemons.
  kubeletEndpoint DaemonEndpoint | Where the kubelet listens.
DaemonEndpoint: The port of a daemon.
  Port int32! | The port.
NodeSystemInfo: A node's system.
  machineID string!
  systemUUID string!
  bootID string!
  kernelVersion string!
  osImage string!
  containerRuntimeVersion string!
  kubeletVersion string!
  kubeProxyVersion string!
  operatingSystem string!
  architecture string!
  swap object
ContainerImage: An image on a node.
  names []string | Its names.
  sizeBytes int64 | Its size.
AttachedVolume: A volume attached to a node.
  name string! | Its name.
  devicePath string! | Its device.
NodeRuntimeHandler: A runtime handler.
  name string | Its name; empty for the default.
  features object | What it can do.
NodeFeatures: What a container runtime can do.
  supplementalGroupsPolicy boolean
`
