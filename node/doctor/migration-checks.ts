import type { Finding } from '@kpng/api'
import { counted, examplesOf, found } from '@kpng/diagnose'
import type { ClusterFacts } from './cluster-facts.js'
import { type Check, check } from './finding.js'
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
    found(
      'KPNG-M001',
      `${counted(users.length, 'Service has', 'Services have')} node ports. They no longer answer on 127.0.0.1.`,
      {
        ...examplesOf(users),
        command:
          "conntrack -L -p tcp --orig-dst 127.0.0.1\ngrep -r '127.0.0.1:3[0-2]' /etc/containerd /etc/systemd/system",
      },
    ),
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
    found(
      'KPNG-M002',
      `Node ports will answer on the node's primary addresses only. This node has ${counted(others.length, 'other address', 'other addresses')}.`,
      {
        why: `Without nodePortAddresses, kube-proxy's ${from} mode serves node ports on every address of a node. kpng serves them where kube-proxy's nftables mode does.`,
        ...examplesOf(others),
        command: 'kpng kube to-local to-nft --nodeport-addresses 0.0.0.0/0',
      },
    ),
  ]
}

export function foreignRules({ iptables }: Facts<'iptables'>): Finding[] {
  const rules = iptables.flatMap((saved) =>
    rulesIn(saved)
      .filter(namesKubeProxyChain)
      .map((rule) => `${saved.program} ${rule}`),
  )
  if (rules.length === 0) return []
  return [
    found(
      'KPNG-M003',
      `${counted(rules.length, 'firewall rule depends', 'firewall rules depend')} on chains of kube-proxy.`,
      { ...examplesOf(rules), command: "iptables-save | grep -n 'KUBE-'" },
    ),
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
    found('KPNG-M004', 'The policy of the chain FORWARD is DROP.', {
      why: `kube-proxy's ${from} mode accepts Service traffic in KUBE-FORWARD. This goes with kube-proxy, and forwarded connections hang then.`,
      examples: dropping,
      command: 'iptables -A FORWARD -s 10.244.0.0/16 -j ACCEPT; iptables -A FORWARD -d 10.244.0.0/16 -j ACCEPT',
    }),
  ]
}

export function ipvsSettings({ from, configuration }: Facts<'from' | 'configuration'>): Finding[] {
  if (from !== 'ipvs') return []
  const { scheduler = '', tcpTimeout, tcpFinTimeout, udpTimeout } = section(configuration, 'ipvs')
  const isZero = (value: unknown) => value === undefined || /^0[a-z]*$/.test(String(value))
  const timeouts = Object.entries({ tcpTimeout, tcpFinTimeout, udpTimeout }).filter(([, value]) => !isZero(value))
  const findings: Finding[] = []
  if (scheduler !== '' && scheduler !== 'rr') {
    findings.push(
      found(
        'KPNG-M005',
        `ipvs.scheduler is ${String(scheduler)}. kpng's nftables backend chooses an endpoint at random for each connection.`,
        { command: 'ipvsadm -Ln' },
      ),
    )
  }
  if (timeouts.length > 0) {
    findings.push(
      found(
        'KPNG-M006',
        `${timeouts.map(([name, value]) => `ipvs.${name} is ${String(value)}`).join(', ')}. Only kpng's ipvs backend uses ${timeouts.length === 1 ? 'it' : 'them'}.`,
        { command: 'kpng kube to-local to-nft --conntrack-tcp-timeout-established 15m --conntrack-udp-timeout 5m' },
      ),
    )
  }
  findings.push(
    found('KPNG-M007', 'Connections that IPVS has open end when its rules are removed.', {
      command: 'ipvsadm -Lnc | tail -n +3 | wc -l',
    }),
  )
  return findings
}

export const migrationChecks: readonly Check<MigrationFacts>[] = [
  check('node ports on localhost', ['from', 'configuration', 'services'], localhostNodePorts),
  check('node ports on other addresses', ['from', 'configuration', 'services', 'addresses'], secondaryAddresses),
  check('firewall rules with KUBE- chains', ['iptables'], foreignRules),
  check('policy of FORWARD', ['from', 'iptables'], forwardPolicy),
  check('settings of ipvs', ['from', 'configuration'], ipvsSettings),
]
