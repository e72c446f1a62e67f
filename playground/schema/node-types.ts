/** Node, in `k8s.io/api/core/v1`. */
export const nodeTypes = `
object Node: A machine that runs pods.
  spec NodeSpec #2 | What it should be.
  status NodeStatus #3 | What was last seen of it.
NodeSpec: What a node should be.
  podCIDR string #1 | The range of its pods' addresses.
  podCIDRs []string #7 merge set | The ranges of its pods' addresses, one of each IP family at most.
  providerID string #3 | Its name at the cloud provider.
  unschedulable boolean #4 | True: no new pods are scheduled to it.
  taints []Taint #5 | What pods must tolerate to be scheduled to it.
  configSource object #6 | Removed.
  externalID string #2 | Deprecated.
Taint: Repels the pods that do not tolerate it.
  key string! #1 | The name of the taint.
  value string #2 | Its value.
  effect string! #3 | NoSchedule, PreferNoSchedule or NoExecute.
  timeAdded Time #4 | When it was added.
NodeStatus: What was last seen of a node.
  capacity {}Quantity #1 | All its resources.
  allocatable {}Quantity #2 | The resources that pods may use.
  phase string #3 | Deprecated.
  conditions []NodeCondition #4 merge=type map=type | The current conditions.
  addresses []NodeAddress #5 merge=type map=type | Where it can be reached.
  daemonEndpoints NodeDaemonEndpoints #6 | Ports of its daemons.
  nodeInfo NodeSystemInfo #7 | Its system.
  images []ContainerImage #8 | The images it has.
  volumesInUse []string #9 | Volumes that are in use.
  volumesAttached []AttachedVolume #10 | Volumes that are attached.
  config object #11 | Removed.
  runtimeHandlers []NodeRuntimeHandler #12 | The runtime handlers it has.
  features NodeFeatures #13 | What its container runtime can do.
  declaredFeatures []string #14 | Features the node declares.
NodeCondition: One aspect of a node.
  type string! #1 | Name of the condition.
  status string! #2 | True, False or Unknown.
  lastHeartbeatTime Time #3 | When this was last reported.
  lastTransitionTime Time #4 | When the status last changed.
  reason string #5 | A word that programs can match.
  message string #6 | A sentence for people.
NodeAddress: Where a node can be reached.
  type string! #1 | Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.
  address string! #2 | The address.
NodeDaemonEndpoints: Ports of a node's daemons.
  kubeletEndpoint DaemonEndpoint #1 | Where the kubelet listens.
DaemonEndpoint: The port of a daemon.
  Port int32! #1 | The port.
NodeSystemInfo: A node's system.
  machineID string! #1
  systemUUID string! #2
  bootID string! #3
  kernelVersion string! #4
  osImage string! #5
  containerRuntimeVersion string! #6
  kubeletVersion string! #7
  kubeProxyVersion string! #8
  operatingSystem string! #9
  architecture string! #10
  swap object #11
ContainerImage: An image on a node.
  names []string #1 | Its names.
  sizeBytes int64 #2 | Its size.
AttachedVolume: A volume attached to a node.
  name string! #1 | Its name.
  devicePath string! #2 | Its device.
NodeRuntimeHandler: A runtime handler.
  name string #1 | Its name; empty for the default.
  features object #2 | What it can do.
NodeFeatures: What a container runtime can do.
  supplementalGroupsPolicy boolean #1
`
