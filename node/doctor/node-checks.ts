import { kpngOwnerChain } from '../kube-proxy-leftovers/names.js'
import { type Check, check, counted, examplesOf, type Finding } from './finding.js'
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
    {
      level: 'problem',
      what: `The kernel ${kernelRelease} is too old for the nftables backend.`,
      why: 'Its rules use expressions that Linux has since 5.9.',
      todo: 'Update the kernel, or use the userspace backend on this node.',
      command: 'uname -r',
    },
  ]
}

export function nftRules({ nftProblem }: Pick<NodeFacts, 'nftProblem'>): Finding[] {
  if (nftProblem === '') return []
  return [
    {
      level: 'problem',
      what: `The nftables backend cannot work here: ${nftProblem}`,
      why: 'kpng to-nft stops at its start with the same message, and serves nothing.',
      todo: 'Load what the kernel lacks. Then check again.',
      command: 'modprobe -a nf_tables nft_nat nft_masq nft_reject_inet nft_numgen nft_fib_inet',
    },
  ]
}

export function rights({ hasNetAdmin }: Pick<NodeFacts, 'hasNetAdmin'>): Finding[] {
  if (hasNetAdmin) return []
  return [
    {
      level: 'warning',
      what: 'This user does not have the capability CAP_NET_ADMIN.',
      why: 'A kpng that is started like this cannot write rules, and this check cannot read them.',
      todo: 'Run this check as root, and give kpng the capability (securityContext, or AmbientCapabilities= of a unit).',
      command: 'sudo kpng doctor',
    },
  ]
}

export function forwarding({ sysctls, addresses }: Pick<NodeFacts, 'sysctls' | 'addresses'>): Finding[] {
  const finding = (name: string, family: string): Finding => ({
    level: 'problem',
    what: `${name} is 0: this node does not forward ${family} packets.`,
    why: 'Connections of pods and from outside never reach a pod through a Service. They hang.',
    todo: 'Switch it on, and keep it on in /etc/sysctl.d.',
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
    {
      level: 'warning',
      what: `The kernel checks source addresses strictly (rp_filter is 1) on ${counted(strictInterfaces.length, 'interface')}.`,
      ...examplesOf(strictInterfaces),
      why: 'It drops replies that arrive on another interface than the way back uses, as with several networks or a tunnel of the network plugin.',
      todo: 'If connections hang on nodes with several interfaces, use loose checks. The higher value of "all" and of the interface counts.',
      command: 'sysctl -w net.ipv4.conf.all.rp_filter=2',
    },
  ]
}

export function bridgedTraffic({ sysctls, bridges }: Pick<NodeFacts, 'sysctls' | 'bridges'>): Finding[] {
  const value = sysctls['net.bridge.bridge-nf-call-iptables']
  if (bridges.length === 0 || value === '1') return []
  return [
    {
      level: 'warning',
      what:
        value === undefined
          ? 'There are bridges, and the module br_netfilter is not loaded.'
          : 'There are bridges, and net.bridge.bridge-nf-call-iptables is 0.',
      ...examplesOf(bridges),
      why: 'If pods are on a bridge, replies between two pods of this node are not translated back, so a Service with an endpoint on the same node hangs.',
      todo: 'If your network plugin uses a bridge, load the module and switch it on. Otherwise nothing.',
      command: 'modprobe br_netfilter && sysctl -w net.bridge.bridge-nf-call-iptables=1',
    },
  ]
}

export function routeLocalnet({ sysctls, iptables }: Pick<NodeFacts, 'sysctls' | 'iptables'>): Finding[] {
  // kpng's own iptables backend sets it too, with the firewall rules that it needs.
  const isOurs = iptables.some(({ saved }) => saved.includes(`:${kpngOwnerChain} `))
  if (isOurs || sysctls['net.ipv4.conf.all.route_localnet'] !== '1') return []
  return [
    {
      level: 'note',
      what: 'net.ipv4.conf.all.route_localnet is 1.',
      why: "kube-proxy's iptables mode sets it for node ports on 127.0.0.1. Without its firewall rules, neighbours can reach programs that listen on 127.0.0.1 only (CVE-2020-8558). kpng needs it in iptables mode only.",
      todo: 'Switch it off once kube-proxy is gone, unless another program needs it.',
      command: 'sysctl -w net.ipv4.conf.all.route_localnet=0',
    },
  ]
}

export function conntrackTable({ conntrack: { count, max } }: Pick<NodeFacts, 'conntrack'>): Finding[] {
  const percent = max > 0 ? Math.floor((100 * count) / max) : 0
  if (percent < 80) return []
  return [
    {
      level: percent >= 95 ? 'problem' : 'warning',
      what: `The table of tracked connections is ${percent} % full (${count} of ${max}).`,
      why: 'When it is full, the kernel drops the first packet of every new connection on this node.',
      todo: 'Raise the limit (kpng: --conntrack-max-per-core), and find out who opens so many connections.',
      command: `sysctl -w net.netfilter.nf_conntrack_max=${max * 2}`,
    },
  ]
}

const fewestFiles = 4096

export function openFilesLimit({ openFiles: { of, limit } }: Pick<NodeFacts, 'openFiles'>): Finding[] {
  if (limit >= fewestFiles) return []
  return [
    {
      level: 'warning',
      what: `${of} may open ${limit} files.`,
      why: 'A kpng without free file descriptors cannot connect, answer or start a program. The userspace backend needs one for each Service port and connection.',
      todo: 'Raise the limit in the unit or the container runtime.',
      command: 'systemctl edit kpng   # [Service] LimitNOFILE=65536',
    },
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
