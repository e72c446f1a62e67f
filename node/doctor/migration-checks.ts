import type { ClusterFacts } from './cluster-facts.js'
import { type Check, check, counted, examplesOf, type Finding } from './finding.js'
import { type NodeFacts, rulesIn } from './node-facts.js'

// What changes for a cluster when kpng's nftables backend takes the place of kube-proxy.

export const kubeProxyModes = ['iptables', 'ipvs', 'nftables'] as const
export type KubeProxyMode = (typeof kubeProxyModes)[number]

export interface MigrationFacts extends Pick<NodeFacts, 'iptables' | 'addresses'>, Pick<ClusterFacts, 'services'> {
  readonly from: KubeProxyMode
  /** The KubeProxyConfiguration. */
  readonly configuration: Readonly<Record<string, unknown>>
}

type Facts<Name extends keyof MigrationFacts> = Pick<MigrationFacts, Name>

const section = (configuration: MigrationFacts['configuration'], name: string): Readonly<Record<string, unknown>> => {
  const value = configuration[name]
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

const nodePortServices = (services: MigrationFacts['services']): string[] =>
  services.flatMap(({ path, nodePorts }) => (nodePorts.length > 0 ? [`${path}: ${nodePorts.join(', ')}`] : []))

export function localhostNodePorts({
  from,
  configuration,
  services,
}: Facts<'from' | 'configuration' | 'services'>): Finding[] {
  const users = nodePortServices(services)
  const isOff = section(configuration, 'iptables').localhostNodePorts === false
  if (from !== 'iptables' || isOff || users.length === 0) return []
  return [
    {
      level: 'warning',
      what: `${counted(users.length, 'Service has', 'Services have')} node ports. They no longer answer on 127.0.0.1.`,
      ...examplesOf(users),
      why: "Only kube-proxy's iptables mode serves node ports on localhost. Whether a program on a node uses that cannot be seen from here.",
      todo: 'Before you switch, look for connections to 127.0.0.1 and a node port on each node, and ask those programs to use the node address. Registries that containerd pulls from are the usual case.',
      command:
        "conntrack -L -p tcp --orig-dst 127.0.0.1\ngrep -r '127.0.0.1:3[0-2]' /etc/containerd /etc/systemd/system",
    },
  ]
}

export function secondaryAddresses({
  from,
  configuration,
  services,
  addresses,
}: Facts<'from' | 'configuration' | 'services' | 'addresses'>): Finding[] {
  const users = nodePortServices(services)
  const given = configuration.nodePortAddresses
  const isSet = Array.isArray(given) && given.length > 0
  // With one address of each family there is no other one.
  const others = ['.', ':'].flatMap((sign) => addresses.filter((address) => address.includes(sign)).slice(1))
  if (from === 'nftables' || isSet || users.length === 0 || others.length === 0) return []
  return [
    {
      level: 'warning',
      what: `Node ports will answer on the node's primary addresses only. This node has ${counted(others.length, 'other address', 'other addresses')}.`,
      ...examplesOf(others),
      why: `Without nodePortAddresses, kube-proxy's ${from} mode serves node ports on every address of a node. kpng serves them where kube-proxy's nftables mode does.`,
      todo: 'If clients or load balancers use other addresses, set nodePortAddresses to their ranges before you switch.',
      command: 'kpng kube to-local to-nft --nodeport-addresses 0.0.0.0/0',
    },
  ]
}

export function foreignRules({ iptables }: Facts<'iptables'>): Finding[] {
  const found = iptables.flatMap((saved) =>
    rulesIn(saved)
      .filter(namesKubeProxyChain)
      .map((rule) => `${saved.program} ${rule}`),
  )
  if (found.length === 0) return []
  return [
    {
      level: 'warning',
      what: `${counted(found.length, 'firewall rule depends', 'firewall rules depend')} on chains of kube-proxy.`,
      ...examplesOf(found),
      why: 'These chains stay empty, or go, with kube-proxy. Then the rules do nothing, or cannot be loaded at the next boot.',
      todo: "Write the rules without kube-proxy's chains. kpng has tables of its own, which other rules need not know.",
      command: "iptables-save | grep -n 'KUBE-'",
    },
  ]
}

/** kube-proxy's and kubelet's own chains, and their entrances in built-in chains with the comments that these write. */
function namesKubeProxyChain(rule: string): boolean {
  const [, chain = '', spec = ''] = /^-A (\S+) (.*)$/.exec(rule) ?? []
  if (chain.startsWith('KUBE-')) return false
  const bare = spec.replace(/"(?:\\.|[^"\\])*"/g, '""')
  const target = /(?:^| )-[jg] (KUBE-(?!FIREWALL|KUBELET|IPTABLES|SRC-|POD-FW|ROUTER|NWPLCY)\S+)/.exec(bare)?.[1]
  if (target === undefined) return /match-set KUBE-/.test(bare)
  const isBuiltIn = /^(?:PREROUTING|OUTPUT|POSTROUTING|INPUT|FORWARD)$/.test(chain)
  return !(isBuiltIn && /--comment "kubernetes /.test(spec))
}

export function forwardPolicy({ from, iptables }: Facts<'from' | 'iptables'>): Finding[] {
  const dropping = iptables.filter(({ saved }) => /^:FORWARD DROP/m.test(saved)).map(({ program }) => program)
  if (from === 'nftables' || dropping.length === 0) return []
  return [
    {
      level: 'problem',
      what: 'The policy of the chain FORWARD is DROP.',
      examples: dropping,
      why: `kube-proxy's ${from} mode accepts Service traffic in KUBE-FORWARD. This goes with kube-proxy, and forwarded connections hang then.`,
      todo: "Accept your pods' range before you switch.",
      command: 'iptables -A FORWARD -s 10.244.0.0/16 -j ACCEPT; iptables -A FORWARD -d 10.244.0.0/16 -j ACCEPT',
    },
  ]
}

export function ipvsSettings({ from, configuration }: Facts<'from' | 'configuration'>): Finding[] {
  if (from !== 'ipvs') return []
  const { scheduler = '', tcpTimeout, tcpFinTimeout, udpTimeout } = section(configuration, 'ipvs')
  const isZero = (value: unknown) => value === undefined || /^0[a-z]*$/.test(String(value))
  const timeouts = Object.entries({ tcpTimeout, tcpFinTimeout, udpTimeout }).filter(([, value]) => !isZero(value))
  const findings: Finding[] = []
  if (scheduler !== '' && scheduler !== 'rr') {
    findings.push({
      level: 'warning',
      what: `ipvs.scheduler is ${String(scheduler)}. kpng's nftables backend chooses an endpoint at random for each connection.`,
      why: "Schedulers such as lc or sh spread load by open connections or by source address. Only kpng's ipvs backend has them.",
      todo: 'Use to-ipvs. Or, with to-nft: set sessionAffinity: ClientIP where clients must stay with one endpoint, and compare the load of pods after the switch.',
      command: 'ipvsadm -Ln',
    })
  }
  if (timeouts.length > 0) {
    findings.push({
      level: 'warning',
      what: `${timeouts.map(([name, value]) => `ipvs.${name} is ${String(value)}`).join(', ')}. Only kpng's ipvs backend uses ${timeouts.length === 1 ? 'it' : 'them'}.`,
      why: 'Idle connections end by the timeouts of connection tracking instead.',
      todo: 'Use to-ipvs. Or, with to-nft: set the matching timeouts of conntrack.',
      command: 'kpng kube to-local to-nft --conntrack-tcp-timeout-established 15m --conntrack-udp-timeout 5m',
    })
  }
  findings.push({
    level: 'warning',
    what: 'Connections that IPVS has open end when its rules are removed.',
    why: "They live in IPVS, not in connection tracking. Only kpng's ipvs backend continues them: it takes over kube-ipvs0 and the virtual servers.",
    todo: 'Use to-ipvs. Or, with another backend: drain each node before you clean up, or wait until its connections have ended.',
    command: 'ipvsadm -Lnc | tail -n +3 | wc -l',
  })
  return findings
}

export const migrationChecks: readonly Check<MigrationFacts>[] = [
  check('node ports on localhost', ['from', 'configuration', 'services'], localhostNodePorts),
  check('node ports on other addresses', ['from', 'configuration', 'services', 'addresses'], secondaryAddresses),
  check('firewall rules with KUBE- chains', ['iptables'], foreignRules),
  check('policy of FORWARD', ['from', 'iptables'], forwardPolicy),
  check('settings of ipvs', ['from', 'configuration'], ipvsSettings),
]
