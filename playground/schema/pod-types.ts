/** Pod, in `k8s.io/api/core/v1`. What nothing here looks into (storage, placement rules) is an open object. */
export const podTypes = `
object Pod: Containers that run together on one node and share an address.
  spec PodSpec #2 | What it should be.
  status PodStatus #3 | What was last seen of it.
PodTemplateSpec: What the pods of a controller look like.
  metadata ObjectMeta #1 | Labels and annotations of the pods.
  spec PodSpec #2 | What they should be.
PodSpec: What a pod should be.
  volumes []Volume #1 merge=name map=name | The volumes its containers can mount.
  initContainers []Container #20 merge=name map=name | Containers that run before the others.
  containers []Container! #2 merge=name map=name | The containers. Here any image answers with an echo server.
  ephemeralContainers []object #34 merge=name map=name | Containers for debugging.
  restartPolicy string #3 | Always, OnFailure or Never.
  terminationGracePeriodSeconds int64 #4 | Seconds the pod may take to end; default 30.
  activeDeadlineSeconds int64 #5 | Seconds the pod may be active.
  dnsPolicy string #6 | ClusterFirst, ClusterFirstWithHostNet, Default or None.
  nodeSelector {}string #7 atomic | The labels a node must have.
  serviceAccountName string #8 | The ServiceAccount to run as.
  serviceAccount string #9 | Deprecated: serviceAccountName.
  automountServiceAccountToken boolean #21 | Whether a token is mounted.
  nodeName string #10 | The node it runs on; set by the scheduler.
  hostNetwork boolean #11 | True: it uses the node's network.
  hostPID boolean #12
  hostIPC boolean #13
  shareProcessNamespace boolean #27
  securityContext object #14
  imagePullSecrets []LocalObjectReference #15 merge=name map=name
  hostname string #16 | Its host name.
  subdomain string #17 | Its DNS subdomain.
  affinity object #18
  schedulerName string #19 | Which scheduler places it.
  tolerations []Toleration #22 | The taints it tolerates.
  hostAliases []HostAlias #23 merge=ip map=ip
  priorityClassName string #24
  priority int32 #25
  dnsConfig PodDNSConfig #26
  readinessGates []PodReadinessGate #28 | Further conditions that must be True for it to be ready.
  runtimeClassName string #29
  enableServiceLinks boolean #30
  preemptionPolicy string #31
  overhead {}Quantity #32
  topologySpreadConstraints []object #33 merge=topologyKey map=topologyKey,whenUnsatisfiable
  setHostnameAsFQDN boolean #35
  os PodOS #36
  hostUsers boolean #37
  schedulingGates []PodSchedulingGate #38 merge=name map=name
  resourceClaims []object #39 merge=name map=name
  resources ResourceRequirements #40
  hostnameOverride string #41
PodOS: The operating system of a pod.
  name string! #1 | linux or windows.
PodSchedulingGate: Holds a pod back from being scheduled.
  name string! #1 | Its name.
PodReadinessGate: A condition that must be True for a pod to be ready.
  conditionType string! #1 | The condition.
PodDNSConfig: Settings of a pod's resolver.
  nameservers []string #1
  searches []string #2
  options []PodDNSConfigOption #3
PodDNSConfigOption: A resolver option.
  name string #1
  value string #2
HostAlias: Names for an address in the pod's hosts file.
  ip string! #1 | The address.
  hostnames []string #2 | The names.
Toleration: Lets a pod run on a node with a taint.
  key string #1
  operator string #2
  value string #3
  effect string #4
  tolerationSeconds int64 #5
LocalObjectReference: An object of the same namespace.
  name string #1 | Its name.
Container: A program in a pod.
  name string! #1 | Its name, unique in the pod.
  image string #2 | Its image.
  command []string #3 | What it runs.
  args []string #4 | Arguments of what it runs.
  workingDir string #5
  ports []ContainerPort #6 merge=containerPort map=containerPort,protocol | The ports it listens on.
  envFrom []object #19
  env []EnvVar #7 merge=name map=name | Its environment.
  resources ResourceRequirements #8 | The resources it needs.
  resizePolicy []object #23
  restartPolicy string #24
  restartPolicyRules []object #25
  volumeMounts []VolumeMount #9 merge=mountPath map=mountPath
  volumeDevices []object #21 merge=devicePath map=devicePath
  livenessProbe Probe #10 | When it is restarted.
  readinessProbe Probe #11 | When it is ready.
  startupProbe Probe #22 | When it has started.
  lifecycle object #12
  terminationMessagePath string #13
  terminationMessagePolicy string #20
  imagePullPolicy string #14
  securityContext object #15
  stdin boolean #16
  stdinOnce boolean #17
  tty boolean #18
ContainerPort: A port a container listens on.
  name string #1 | Its name, which a Service's targetPort can use.
  hostPort int32 #2
  containerPort int32! #3 | Its number.
  protocol string #4 =TCP | TCP, UDP or SCTP.
  hostIP string #5
EnvVar: A variable of the environment.
  name string! #1 | Its name.
  value string #2 | Its value.
  valueFrom object #3 | Where its value comes from.
ResourceRequirements: Resources that are asked for.
  limits {}Quantity #1
  requests {}Quantity #2
  claims []ResourceClaim #3 map=name
ResourceClaim: A claim of the pod that a container uses.
  name string! #1
  request string #2
VolumeMount: Where a volume is mounted.
  name string! #1
  readOnly boolean #2
  recursiveReadOnly string #7
  mountPath string! #3
  subPath string #4
  mountPropagation string #5
  subPathExpr string #6
Probe: A check of a container.
  exec ExecAction
  httpGet HTTPGetAction
  tcpSocket TCPSocketAction
  grpc GRPCAction
  initialDelaySeconds int32 #2
  timeoutSeconds int32 #3
  periodSeconds int32 #4
  successThreshold int32 #5
  failureThreshold int32 #6
  terminationGracePeriodSeconds int64 #7
ExecAction: Runs a command.
  command []string #1
HTTPGetAction: Asks by HTTP.
  path string #1
  port IntOrString! #2
  host string #3
  scheme string #4
  httpHeaders []HTTPHeader #5
HTTPHeader: A header.
  name string! #1
  value string! #2
TCPSocketAction: Opens a connection.
  port IntOrString! #1
  host string #2
GRPCAction: Asks by gRPC.
  port int32! #1
  service string #2
Volume: A volume of a pod.
  name string! #1
  hostPath object
  emptyDir object
  gcePersistentDisk object
  awsElasticBlockStore object
  gitRepo object
  secret object
  nfs object
  iscsi object
  glusterfs object
  persistentVolumeClaim object
  rbd object
  flexVolume object
  cinder object
  cephfs object
  flocker object
  downwardAPI object
  fc object
  azureFile object
  configMap object
  vsphereVolume object
  quobyte object
  azureDisk object
  photonPersistentDisk object
  projected object
  portworxVolume object
  scaleIO object
  storageos object
  csi object
  ephemeral object
  image object
PodStatus: What was last seen of a pod.
  observedGeneration int64 #17
  phase string #1 | Pending, Running, Succeeded, Failed or Unknown.
  conditions []PodCondition #2 merge=type map=type | The current conditions.
  message string #3 | A sentence for people.
  reason string #4 | A word that programs can match.
  nominatedNodeName string #11
  hostIP string #5 | The address of its node.
  hostIPs []HostIP #16 merge=ip | The addresses of its node.
  podIP string #6 | Its address.
  podIPs []PodIP #12 merge=ip map=ip | Its addresses.
  startTime Time #7 | When its node took it.
  initContainerStatuses []ContainerStatus #10
  containerStatuses []ContainerStatus #8
  qosClass string #9
  ephemeralContainerStatuses []ContainerStatus #13
  resize string #14
  resourceClaimStatuses []object #15 merge=name map=name
  extendedResourceClaimStatus object #18
HostIP: An address of a node.
  ip string! #1
PodIP: An address of a pod.
  ip string! #1
PodCondition: One aspect of a pod.
  type string! #1 | Name of the condition.
  observedGeneration int64 #7
  status string! #2 | True, False or Unknown.
  lastProbeTime Time #3
  lastTransitionTime Time #4
  reason string #5
  message string #6
ContainerStatus: What was last seen of a container.
  name string! #1
  state ContainerState #2
  lastState ContainerState #3
  ready boolean! #4
  restartCount int32! #5
  image string! #6
  imageID string! #7
  containerID string #8
  started boolean #9
  allocatedResources {}Quantity #10
  resources ResourceRequirements #11
  volumeMounts []object #12 merge=mountPath map=mountPath
  user object #13
  allocatedResourcesStatus []object #14 merge=name map=name
  stopSignal string #15
ContainerState: What a container does.
  waiting ContainerStateWaiting #1
  running ContainerStateRunning #2
  terminated ContainerStateTerminated #3
ContainerStateWaiting: It waits.
  reason string #1
  message string #2
ContainerStateRunning: It runs.
  startedAt Time #1
ContainerStateTerminated: It has ended.
  exitCode int32! #1
  signal int32 #2
  reason string #3
  message string #4
  startedAt Time #5
  finishedAt Time #6
  containerID string #7
`
