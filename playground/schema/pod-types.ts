/** Pod, in `k8s.io/api/core/v1`. What nothing here looks into (storage, placement rules) is an open object. */
export const podTypes = `
Pod: Containers that run together on one node and share an address.
  apiVersion string | The version of the API this object is written in.
  kind string | The kind of this object.
  metadata ObjectMeta | Names, labels and life cycle.
  spec PodSpec | What it should be.
  status PodStatus | What was last seen of it.
PodTemplateSpec: What the pods of a controller look like.
  metadata ObjectMeta | Labels and annotations of the pods.
  spec PodSpec | What they should be.
PodSpec: What a pod should be.
  volumes []Volume merge=name map=name | The volumes its containers can mount.
  initContainers []Container merge=name map=name | Containers that run before the others.
  containers []Container! merge=name map=name | The containers. Here any image answers with an echo server.
  ephemeralContainers []object merge=name map=name | Containers for debugging.
  restartPolicy string | Always, OnFailure or Never.
  terminationGracePeriodSeconds int64 | Seconds the pod may take to end; default 30.
  activeDeadlineSeconds int64 | Seconds the pod may be active.
  dnsPolicy string | ClusterFirst, ClusterFirstWithHostNet, Default or None.
  nodeSelector {}string atomic | The labels a node must have.
  serviceAccountName string | The ServiceAccount to run as.
  serviceAccount string | Deprecated: serviceAccountName.
  automountServiceAccountToken boolean | Whether a token is mounted.
  nodeName string | The node it runs on; set by the scheduler.
  hostNetwork boolean | True: it uses the node's network.
  hostPID boolean
  hostIPC boolean
  shareProcessNamespace boolean
  securityContext object
  imagePullSecrets []LocalObjectReference merge=name map=name
  hostname string | Its host name.
  subdomain string | Its DNS subdomain.
  affinity object
  schedulerName string | Which scheduler places it.
  tolerations []Toleration | The taints it tolerates.
  hostAliases []HostAlias merge=ip map=ip
  priorityClassName string
  priority int32
  dnsConfig PodDNSConfig
  readinessGates []PodReadinessGate | Further conditions that must be True for it to be ready.
  runtimeClassName string
  enableServiceLinks boolean
  preemptionPolicy string
  overhead {}Quantity
  topologySpreadConstraints []object merge=topologyKey map=topologyKey,whenUnsatisfiable
  setHostnameAsFQDN boolean
  os PodOS
  hostUsers boolean
  schedulingGates []PodSchedulingGate merge=name map=name
  resourceClaims []object merge=name map=name
  resources ResourceRequirements
  hostnameOverride string
PodOS: The operating system of a pod.
  name string! | linux or windows.
PodSchedulingGate: Holds a pod back from being scheduled.
  name string! | Its name.
PodReadinessGate: A condition that must be True for a pod to be ready.
  conditionType string! | The condition.
PodDNSConfig: Settings of a pod's resolver.
  nameservers []string
  searches []string
  options []PodDNSConfigOption
PodDNSConfigOption: A resolver option.
  name string
  value string
HostAlias: Names for an address in the pod's hosts file.
  ip string! | The address.
  hostnames []string | The names.
Toleration: Lets a pod run on a node with a taint.
  key string
  operator string
  value string
  effect string
  tolerationSeconds int64
LocalObjectReference: An object of the same namespace.
  name string | Its name.
Container: A program in a pod.
  name string! | Its name, unique in the pod.
  image string | Its image.
  command []string | What it runs.
  args []string | Arguments of what it runs.
  workingDir string
  ports []ContainerPort merge=containerPort map=containerPort,protocol | The ports it listens on.
  envFrom []object
  env []EnvVar merge=name map=name | Its environment.
  resources ResourceRequirements | The resources it needs.
  resizePolicy []object
  restartPolicy string
  restartPolicyRules []object
  volumeMounts []VolumeMount merge=mountPath map=mountPath
  volumeDevices []object merge=devicePath map=devicePath
  livenessProbe Probe | When it is restarted.
  readinessProbe Probe | When it is ready.
  startupProbe Probe | When it has started.
  lifecycle object
  terminationMessagePath string
  terminationMessagePolicy string
  imagePullPolicy string
  securityContext object
  stdin boolean
  stdinOnce boolean
  tty boolean
ContainerPort: A port a container listens on.
  name string | Its name, which a Service's targetPort can use.
  hostPort int32
  containerPort int32! | Its number.
  protocol string =TCP | TCP, UDP or SCTP.
  hostIP string
EnvVar: A variable of the environment.
  name string! | Its name.
  value string | Its value.
  valueFrom object | Where its value comes from.
ResourceRequirements: Resources that are asked for.
  limits {}Quantity
  requests {}Quantity
  claims []ResourceClaim map=name
ResourceClaim: A claim of the pod that a container uses.
  name string!
  request string
VolumeMount: Where a volume is mounted.
  name string!
  readOnly boolean
  recursiveReadOnly string
  mountPath string!
  subPath string
  mountPropagation string
  subPathExpr string
Probe: A check of a container.
  exec ExecAction
  httpGet HTTPGetAction
  tcpSocket TCPSocketAction
  grpc GRPCAction
  initialDelaySeconds int32
  timeoutSeconds int32
  periodSeconds int32
  successThreshold int32
  failureThreshold int32
  terminationGracePeriodSeconds int64
ExecAction: Runs a command.
  command []string
HTTPGetAction: Asks by HTTP.
  path string
  port IntOrString!
  host string
  scheme string
  httpHeaders []HTTPHeader
HTTPHeader: A header.
  name string!
  value string!
TCPSocketAction: Opens a connection.
  port IntOrString!
  host string
GRPCAction: Asks by gRPC.
  port int32!
  service string
Volume: A volume of a pod.
  name string!
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
  observedGeneration int64
  phase string | Pending, Running, Succeeded, Failed or Unknown.
  conditions []PodCondition merge=type map=type | The current conditions.
  message string | A sentence for people.
  reason string | A word that programs can match.
  nominatedNodeName string
  hostIP string | The address of its node.
  hostIPs []HostIP merge=ip | The addresses of its node.
  podIP string | Its address.
  podIPs []PodIP merge=ip map=ip | Its addresses.
  startTime Time | When its node took it.
  initContainerStatuses []ContainerStatus
  containerStatuses []ContainerStatus
  qosClass string
  ephemeralContainerStatuses []ContainerStatus
  resize string
  resourceClaimStatuses []object merge=name map=name
  extendedResourceClaimStatus object
HostIP: An address of a node.
  ip string!
PodIP: An address of a pod.
  ip string!
PodCondition: One aspect of a pod.
  type string! | Name of the condition.
  observedGeneration int64
  status string! | True, False or Unknown.
  lastProbeTime Time
  lastTransitionTime Time
  reason string
  message string
ContainerStatus: What was last seen of a container.
  name string!
  state ContainerState
  lastState ContainerState
  ready boolean!
  restartCount int32!
  image string!
  imageID string!
  containerID string
  started boolean
  allocatedResources {}Quantity
  resources ResourceRequirements
  volumeMounts []object merge=mountPath map=mountPath
  user object
  allocatedResourcesStatus []object merge=name map=name
  stopSignal string
ContainerState: What a container does.
  waiting ContainerStateWaiting
  running ContainerStateRunning
  terminated ContainerStateTerminated
ContainerStateWaiting: It waits.
  reason string
  message string
ContainerStateRunning: It runs.
  startedAt Time
ContainerStateTerminated: It has ended.
  exitCode int32!
  signal int32
  reason string
  message string
  startedAt Time
  finishedAt Time
  containerID string
`
