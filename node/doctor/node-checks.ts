import type { Finding } from '@kpng/api'
import { counted, examplesOf, found } from '@kpng/diagnose'
import { kpngOwnerChain } from '../kube-proxy-leftovers/names.js'
import { type Check, check } from './finding.js'
import type { NodeFacts, TrafficFacts } from './node-facts.js'

// What a kernel and a process need for Services to work. Every check is a function of plain facts.

const lowestKernel = [5, 9] as const

export function isKernelTooOld(release: string): boolean {
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)/.exec(release) ?? []
  if (major === '0') return false
  return Number(major) < lowestKernel[0] || (Number(major) === lowestKernel[0] && Number(minor) < lowestKernel[1])
}

export function kernel({ kernelRelease }: Pick<NodeFacts, 'kernelRelease'>): Finding[] {
  if (!isKernelTooOld(kernelRelease)) return []
  return [
    found('KPNG-N001', `The kernel ${kernelRelease} is too old for the nftables backend.`, { command: 'uname -r' }),
  ]
}

export function nftRules({ nftProblem }: Pick<NodeFacts, 'nftProblem'>): Finding[] {
  if (nftProblem === '') return []
  return [
    found('KPNG-N002', `The nftables backend cannot work here: ${nftProblem}`, {
      command: 'modprobe -a nf_tables nft_nat nft_masq nft_reject_inet nft_numgen nft_fib_inet',
    }),
  ]
}

export function rights({ hasNetAdmin }: Pick<NodeFacts, 'hasNetAdmin'>): Finding[] {
  if (hasNetAdmin) return []
  return [found('KPNG-N003', 'This user does not have the capability CAP_NET_ADMIN.', { command: 'sudo kpng doctor' })]
}

export function forwarding({ sysctls, addresses }: Pick<NodeFacts, 'sysctls' | 'addresses'>): Finding[] {
  const finding = (name: string, family: string): Finding =>
    found('KPNG-N004', `${name} is 0: this node does not forward ${family} packets.`, {
      command: `sysctl -w ${name}=1`,
    })
  const hasIpv6 =
    addresses.some((address) => address.includes(':')) && sysctls['net.ipv6.conf.all.disable_ipv6'] !== '1'
  return [
    ...(sysctls['net.ipv4.ip_forward'] === '0' ? [finding('net.ipv4.ip_forward', 'IPv4')] : []),
    // A node with an IPv6 address may be in a cluster that only uses IPv4.
    ...(hasIpv6 && sysctls['net.ipv6.conf.all.forwarding'] === '0'
      ? [{ ...finding('net.ipv6.conf.all.forwarding', 'IPv6'), level: 'note' as const }]
      : []),
  ]
}

export function reversePath({ strictInterfaces }: Pick<NodeFacts, 'strictInterfaces'>): Finding[] {
  if (strictInterfaces.length === 0) return []
  return [
    found(
      'KPNG-N005',
      `The kernel checks source addresses strictly (rp_filter is 1) on ${counted(strictInterfaces.length, 'interface')}.`,
      { ...examplesOf(strictInterfaces), command: 'sysctl -w net.ipv4.conf.all.rp_filter=2' },
    ),
  ]
}

export function bridgedTraffic({ sysctls, bridges }: Pick<NodeFacts, 'sysctls' | 'bridges'>): Finding[] {
  const value = sysctls['net.bridge.bridge-nf-call-iptables']
  if (bridges.length === 0 || value === '1') return []
  return [
    found(
      'KPNG-N006',
      value === undefined
        ? 'There are bridges, and the module br_netfilter is not loaded.'
        : 'There are bridges, and net.bridge.bridge-nf-call-iptables is 0.',
      { ...examplesOf(bridges), command: 'modprobe br_netfilter && sysctl -w net.bridge.bridge-nf-call-iptables=1' },
    ),
  ]
}

export function routeLocalnet({ sysctls, iptables }: Pick<NodeFacts, 'sysctls' | 'iptables'>): Finding[] {
  // kpng's own iptables backend sets it too, with the firewall rules that it needs.
  const isOurs = iptables.some(({ saved }) => saved.includes(`:${kpngOwnerChain} `))
  if (isOurs || sysctls['net.ipv4.conf.all.route_localnet'] !== '1') return []
  return [
    found('KPNG-N007', 'net.ipv4.conf.all.route_localnet is 1.', {
      command: 'sysctl -w net.ipv4.conf.all.route_localnet=0',
    }),
  ]
}

export function conntrackTable({ conntrack: { count, max } }: Pick<NodeFacts, 'conntrack'>): Finding[] {
  const percent = max > 0 ? Math.floor((100 * count) / max) : 0
  if (percent < 80) return []
  return [
    found('KPNG-N008', `The table of tracked connections is ${percent} % full (${count} of ${max}).`, {
      level: percent >= 95 ? 'problem' : 'warning',
      command: `sysctl -w net.netfilter.nf_conntrack_max=${max * 2}`,
    }),
  ]
}

const fewestFiles = 4096

export function openFilesLimit({ openFiles: { of, limit } }: Pick<NodeFacts, 'openFiles'>): Finding[] {
  if (limit >= fewestFiles) return []
  return [
    found('KPNG-N009', `${of} may open ${limit} files.`, {
      command: 'systemctl edit kpng   # [Service] LimitNOFILE=65536',
    }),
  ]
}

const forwardingCheck = check<TrafficFacts, 'sysctls' | 'addresses'>('forwarding', ['sysctls', 'addresses'], forwarding)
const reversePathCheck = check<TrafficFacts, 'strictInterfaces'>(
  'reverse path filter',
  ['strictInterfaces'],
  reversePath,
)
const conntrackCheck = check<TrafficFacts, 'conntrack'>('connection tracking', ['conntrack'], conntrackTable)

/** What stops packets of Services, whatever the proxy does. */
export const trafficChecks: readonly Check<TrafficFacts>[] = [forwardingCheck, reversePathCheck, conntrackCheck]

export const kernelChecks: readonly Check<NodeFacts>[] = [
  check('rights', ['hasNetAdmin'], rights),
  check('kernel version', ['kernelRelease'], kernel),
  check('nftables', ['nftProblem'], nftRules),
  forwardingCheck,
  reversePathCheck,
  check('bridged traffic', ['sysctls', 'bridges'], bridgedTraffic),
  check('route_localnet', ['sysctls', 'iptables'], routeLocalnet),
  conntrackCheck,
  check('open files', ['openFiles'], openFilesLimit),
]
