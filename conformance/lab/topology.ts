import {
  addressOf,
  type DualAddress,
  externalCidr,
  type Family,
  families,
  type Host,
  hosts,
  loadBalancerCidr,
  ownExternalAddress,
  podCidr,
  secondAddress,
  serviceCidr,
} from '../addresses.js'

// The lab, as data:
//
//   outside ──┐                       ┌── pod-a, a1, a2
//             ├──── node-a (proxy) ───┤
//   gateway ──┘        │              └── everything unknown goes to the gateway
//                    node-b ── pod-b, b1, b2
//
// Every line is a veth with the address of each end on it, as point-to-point links have it: a node has one address of each
// family, whichever way a packet goes, so a masqueraded packet has exactly one possible source. node-b has no proxy; its pods'
// packets to Services come to node-a, which is how "a pod of another node" is tried. The gateway answers at every Service
// address: what the proxy under test does not stop ends there, and shows as "passed" instead of looking like a drop.

export interface Link {
  readonly near: Host
  readonly far: Host
}

export const links: readonly Link[] = [
  { near: 'node-a', far: 'outside' },
  { near: 'node-a', far: 'gateway' },
  { near: 'node-a', far: 'node-b' },
  { near: 'node-a', far: 'pod-a' },
  { near: 'node-a', far: 'a1' },
  { near: 'node-a', far: 'a2' },
  { near: 'node-b', far: 'pod-b' },
  { near: 'node-b', far: 'b1' },
  { near: 'node-b', far: 'b2' },
]

/** Where a host sends what is not at the other end of one of its own links. */
const defaultRoute: Readonly<Record<Host, Host>> = {
  'node-a': 'gateway',
  'node-b': 'node-a',
  'pod-a': 'node-a',
  a1: 'node-a',
  a2: 'node-a',
  'pod-b': 'node-b',
  b1: 'node-b',
  b2: 'node-b',
  outside: 'node-a',
  gateway: 'node-a',
}

const isNode = (host: Host): boolean => host === 'node-a' || host === 'node-b'

/** Names of interfaces: `eth0` in whatever has one link only; on nodes `pod-…` to pods, so that a prefix finds them. */
export function interfaceName(host: Host, peer: Host): string {
  if (!isNode(host)) return 'eth0'
  return ['outside', 'gateway', 'node-a', 'node-b'].includes(peer) ? `to-${peer}` : `pod-${peer.replace('pod-', '')}`
}

/** The hardware address of a host at the end of a link, from the place of both in the lists: known before the link exists. */
const hardwareAddress = (host: Host, peer: Host): string =>
  `02:00:00:00:${twoDigits(hosts.indexOf(host))}:${twoDigits(hosts.indexOf(peer))}`

const twoDigits = (number: number): string => number.toString(16).padStart(2, '0')

/**
 * Lines for `ip -batch` in the machine's own namespace: they make every veth with its ends in place. The two ends get different
 * index numbers: with equal ones, as they come by themselves in fresh namespaces, the kernel takes up to a second to notice
 * that the other end is up.
 */
export const linkLines = (namespaceOf: (host: Host) => string): string[] =>
  links.map(({ near, far }, number) => {
    const end = (host: Host, peer: Host, index: number) =>
      `name ${interfaceName(host, peer)} index ${index + number} address ${hardwareAddress(host, peer)} netns ${namespaceOf(host)}`
    return `link add ${end(near, far, 100)} type veth peer ${end(far, near, 200)}`
  })

/** Lines for `ip -batch` in the namespace of one host. */
export function hostLines(host: Host): string[] {
  const peers = links.flatMap(({ near, far }) => (near === host ? [far] : far === host ? [near] : []))
  const lines = ['link set lo up']
  for (const peer of peers) {
    const device = interfaceName(host, peer)
    lines.push(`link set ${device} up`)
    for (const family of families) {
      // Routes to the other end are made by hand: the kernel forgets those of `peer` in IPv6 when the link comes up late.
      // Neighbours are known, not discovered: discovery needs a link-local address, which comes late on a new link.
      const other = addressOf[peer][family]
      lines.push(
        `address add ${addressOf[host][family]}/${family === 'v4' ? 32 : 128} dev ${device}${family === 'v4' ? '' : ' nodad'}`,
        `route add ${other} dev ${device}`,
        `neighbour add ${other} lladdr ${hardwareAddress(peer, host)} dev ${device} nud permanent`,
      )
    }
  }
  for (const family of families) {
    const device = interfaceName(host, defaultRoute[host])
    const via = addressOf[defaultRoute[host]][family]
    // Onlink: the other end may not be up yet, and then nothing seems to lead to it.
    lines.push(`route add default via ${via} dev ${device} onlink`)
    lines.push(...extraLines(host).map((line) => line[family]))
  }
  return lines
}

function extraLines(host: Host): DualAddress[] {
  const each = (line: (family: Family) => string): DualAddress => ({ v4: line('v4'), v6: line('v6') })
  switch (host) {
    case 'node-a':
      return [
        each(
          (family) => `route add ${podCidr['node-b'][family]} via ${addressOf['node-b'][family]} dev to-node-b onlink`,
        ),
        ...[secondAddress, ownExternalAddress].map((address) =>
          each((family) => `address add ${address[family]}/${family === 'v4' ? 32 : 128} dev lo`),
        ),
      ]
    case 'gateway':
      // Every address of these ranges is the gateway's own: it answers whatever reaches it.
      return [serviceCidr, loadBalancerCidr, externalCidr].map((cidr) =>
        each((family) => `route add local ${cidr[family]} dev lo`),
      )
    default:
      return []
  }
}
