import {
  addressAndPort,
  boolean,
  cidrList,
  cidrsInText,
  duration,
  hostName,
  ipAddress,
  type Kind,
  oneOf,
  switches,
  text,
  wholeNumber,
} from './kinds.js'

/** One setting: its place in a KubeProxyConfiguration, its flag, and its default. */
export interface Setting<T> {
  readonly kind: Kind<T>
  /** In the file. Several: one for each mode's section (`sections.ts` says which of them counts). */
  readonly paths: readonly [string, ...string[]]
  /** Without the dashes; kube-proxy's name if it has one. */
  readonly flag: string
  readonly summary: string
  /** As kube-proxy has it. */
  readonly fallback: T
}

const setting = <T>(
  path: string | readonly [string, ...string[]],
  flag: string,
  summary: string,
  kind: Kind<T>,
  fallback: T,
): Setting<T> => ({
  kind,
  paths: typeof path === 'string' ? [path] : path,
  flag,
  summary,
  fallback,
})

const fullPeriod = duration({ zeroIsUnset: true })
const timeout = duration({ zeroIsUnset: false })
const mostInt32 = 2 ** 31 - 1

/** kubeadm writes false for what nobody set. */
const whenTrue: Kind<boolean> = { ...boolean, fromFile: (value, name) => boolean.fromFile(value, name) || undefined }

const detectLocalModes = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'] as const
const nodePortKeywords = ['primary', 'localhost', 'all'] as const

/** Every setting, once: defaults, file, flags, /configz and /flagz all use this table. */
export const settingsTable = {
  mode: setting('mode', 'proxy-mode', 'which data plane: nftables, iptables or ipvs', text, ''),
  hostnameOverride: setting(
    'hostnameOverride',
    'hostname-override',
    'name of the Node object; --node-name means the same',
    hostName,
    '',
  ),
  bindAddress: setting(
    'bindAddress',
    'bind-address',
    'if it is IPv6, so are the default addresses for health and metrics; otherwise not used',
    ipAddress,
    '0.0.0.0',
  ),
  healthzBindAddress: setting(
    'healthzBindAddress',
    'healthz-bind-address',
    'where to serve /healthz, /livez and /readyz',
    addressAndPort(10256),
    '0.0.0.0:10256',
  ),
  metricsBindAddress: setting(
    'metricsBindAddress',
    'metrics-bind-address',
    'where to serve /metrics and the debugging pages',
    addressAndPort(10249),
    '127.0.0.1:10249',
  ),
  bindAddressHardFail: setting(
    'bindAddressHardFail',
    'bind-address-hard-fail',
    'exit if one of these ports cannot be opened, instead of retrying',
    boolean,
    false,
  ),
  enableProfiling: setting(
    'enableProfiling',
    'profiling',
    'serve CPU and heap profiles beside the metrics',
    boolean,
    false,
  ),
  kubeconfig: setting('clientConnection.kubeconfig', 'kubeconfig', 'the kubeconfig for the API server', text, ''),
  clusterCidrs: setting(
    'clusterCIDR',
    'cluster-cidr',
    'ranges of the pods in the cluster, one per IP family, with a comma',
    cidrsInText,
    [],
  ),
  detectLocalMode: setting(
    'detectLocalMode',
    'detect-local-mode',
    `how to recognise traffic from local pods: ${detectLocalModes.join(', ')}`,
    oneOf(detectLocalModes),
    'ClusterCIDR',
  ),
  bridgeInterface: setting(
    'detectLocal.bridgeInterface',
    'pod-bridge-interface',
    'with BridgeInterface: the name of the bridge',
    text,
    '',
  ),
  interfaceNamePrefix: setting(
    'detectLocal.interfaceNamePrefix',
    'pod-interface-name-prefix',
    'with InterfaceNamePrefix: the prefix of the interface names',
    text,
    '',
  ),
  nodePortAddresses: setting(
    'nodePortAddresses',
    'nodeport-addresses',
    'addresses that serve node ports: CIDRs, primary or all',
    cidrList(nodePortKeywords),
    ['primary'],
  ),
  masqueradeAll: setting(
    ['nftables.masqueradeAll', 'iptables.masqueradeAll'],
    'masquerade-all',
    'masquerade all traffic to cluster IPs',
    boolean,
    false,
  ),
  masqueradeBit: setting(
    ['nftables.masqueradeBit', 'iptables.masqueradeBit'],
    'masquerade-bit',
    'bit of the packet mark that means "masquerade"',
    wholeNumber(0, 31),
    14,
  ),
  localhostNodePorts: setting(
    'iptables.localhostNodePorts',
    'iptables-localhost-nodeports',
    'mode iptables: serve node ports on 127.0.0.1, where nodePortAddresses allows it',
    boolean,
    true,
  ),
  syncPeriodMs: setting(
    ['nftables.syncPeriod', 'iptables.syncPeriod', 'ipvs.syncPeriod'],
    'sync-period',
    'how often to check the addresses of the machine and retry failed ports',
    fullPeriod,
    30_000,
  ),
  minSyncPeriodMs: setting(
    ['nftables.minSyncPeriod', 'iptables.minSyncPeriod', 'ipvs.minSyncPeriod'],
    'min-sync-period',
    'shortest time between two syncs',
    fullPeriod,
    1000,
  ),
  ipvsScheduler: setting(
    'ipvs.scheduler',
    'ipvs-scheduler',
    'mode ipvs: how IPVS chooses an endpoint, such as rr, wrr, lc, wlc, sh or mh',
    text,
    'rr',
  ),
  ipvsExcludeCidrs: setting(
    'ipvs.excludeCIDRs',
    'ipvs-exclude-cidrs',
    'mode ipvs: addresses whose virtual servers belong to others and are left alone',
    cidrList([]),
    [],
  ),
  ipvsStrictArp: setting(
    'ipvs.strictARP',
    'ipvs-strict-arp',
    'mode ipvs: answer ARP requests only for addresses of the interface that they came in at',
    boolean,
    false,
  ),
  ipvsTcpTimeoutMs: setting(
    'ipvs.tcpTimeout',
    'ipvs-tcp-timeout',
    'mode ipvs: timeout of idle TCP connections; 0: do not change it',
    timeout,
    0,
  ),
  ipvsTcpFinTimeoutMs: setting(
    'ipvs.tcpFinTimeout',
    'ipvs-tcpfin-timeout',
    'mode ipvs: timeout of TCP connections after a FIN; 0: do not change it',
    timeout,
    0,
  ),
  ipvsUdpTimeoutMs: setting(
    'ipvs.udpTimeout',
    'ipvs-udp-timeout',
    'mode ipvs: timeout of UDP flows; 0: do not change it',
    timeout,
    0,
  ),
  oomScoreAdj: setting(
    'oomScoreAdj',
    'oom-score-adj',
    'OOM score of this process, -1000 (killed last) to 1000',
    wholeNumber(-1000, 1000),
    -999,
  ),
  conntrackMaxPerCore: setting(
    'conntrack.maxPerCore',
    'conntrack-max-per-core',
    'connections to track per CPU core; kpng never lowers the limit of the kernel; 0: do not change it',
    wholeNumber(0, mostInt32),
    32 * 1024,
  ),
  conntrackMin: setting(
    'conntrack.min',
    'conntrack-min',
    'smallest limit of tracked connections, with few cores',
    wholeNumber(0, mostInt32),
    128 * 1024,
  ),
  conntrackTcpEstablishedTimeoutMs: setting(
    'conntrack.tcpEstablishedTimeout',
    'conntrack-tcp-timeout-established',
    'timeout of idle TCP connections; 0: do not change it',
    timeout,
    24 * 3_600_000,
  ),
  conntrackTcpCloseWaitTimeoutMs: setting(
    'conntrack.tcpCloseWaitTimeout',
    'conntrack-tcp-timeout-close-wait',
    'timeout of TCP connections in CLOSE_WAIT; 0: do not change it',
    timeout,
    3_600_000,
  ),
  conntrackTcpBeLiberal: setting(
    'conntrack.tcpBeLiberal',
    'conntrack-tcp-be-liberal',
    'accept TCP packets outside the window',
    boolean,
    false,
  ),
  conntrackUdpTimeoutMs: setting(
    'conntrack.udpTimeout',
    'conntrack-udp-timeout',
    'timeout of UDP flows without an answer; 0: do not change it',
    timeout,
    0,
  ),
  conntrackUdpStreamTimeoutMs: setting(
    'conntrack.udpStreamTimeout',
    'conntrack-udp-timeout-stream',
    'timeout of UDP flows with answers; 0: do not change it',
    timeout,
    0,
  ),
  networkName: setting(
    'winkernel.networkName',
    'network-name',
    'HNS network of the pods (default: the environment variable KUBE_NETWORK)',
    text,
    '',
  ),
  sourceVip: setting(
    'winkernel.sourceVip',
    'source-vip',
    'source address that pods see; overlay networks need it',
    ipAddress,
    '',
  ),
  enableDsr: setting(
    'winkernel.enableDSR',
    'enable-dsr',
    'answers of cluster IPs go to the client directly',
    whenTrue,
    false,
  ),
  rootHnsEndpointName: setting(
    'winkernel.rootHnsEndpointName',
    'root-hnsendpoint-name',
    'HNS endpoint of the node that health checks of load balancers are passed to',
    text,
    'cbr0',
  ),
  forwardHealthCheckVip: setting(
    'winkernel.forwardHealthCheckVip',
    'forward-healthcheck-vip',
    'pass health checks that come to a load-balancer IP to the node',
    whenTrue,
    false,
  ),
  featureGates: setting(
    'featureGates',
    'feature-gates',
    'feature gates of kube-proxy, such as AllowServiceExternalIPs=false; several with commas',
    switches,
    {},
  ),
  verbosity: setting('logging.verbosity', 'v', 'verbosity of the log', wholeNumber(0, mostInt32), 0),
  logFormat: setting('logging.format', 'log-format', 'text or json', oneOf(['text', 'json']), 'text'),
} as const

type Table = typeof settingsTable
type ValueOf<S> = S extends Setting<infer T> ? T : never

export type SettingKey = keyof Table

/** Every setting with its value. */
export type Settings = { readonly [K in SettingKey]: ValueOf<Table[K]> }

/** The table without the types of its values, for code that treats all settings alike. */
export const everySetting = Object.entries(settingsTable) as unknown as readonly (readonly [
  SettingKey,
  Setting<unknown>,
])[]

/** The values without flags and file: kube-proxy's defaults. */
export const defaultSettings = Object.fromEntries(
  everySetting.map(([key, { fallback }]) => [key, fallback]),
) as unknown as Settings
