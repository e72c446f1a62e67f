import { families } from '@kpng/api'
import { addressLine, type LabPlan, type Link } from '@kpng/linux/testing'
import {
  addedServiceCidr,
  addressOf,
  externalCidr,
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
// packets to Services come to node-a, which is how "a pod of another node" is tried; for some cases it runs the proxy too. The links between
// the nodes, and from node-a to the outside, have a smaller MTU than those of the hosts beyond them, which must learn it from ICMP errors. The gateway answers at every Service
// address: what the proxy under test does not stop ends there, and shows as "passed" instead of looking like a drop.

const pairs: readonly (readonly [near: Host, far: Host])[] = [
  ['node-a', 'outside'],
  ['node-a', 'gateway'],
  ['node-a', 'node-b'],
  ['node-a', 'pod-a'],
  ['node-a', 'a1'],
  ['node-a', 'a2'],
  ['node-b', 'pod-b'],
  ['node-b', 'b1'],
  ['node-b', 'b2'],
]

/** Where a host sends what is not at the other end of one of its own links. */
const defaultRoute = {
  'node-a': 'gateway',
  ...Object.fromEntries(pairs.map(([near, far]) => [far, near])),
} as Readonly<Record<Host, Host>>

const isNode = (host: Host): boolean => host === 'node-a' || host === 'node-b'

/** Names of interfaces: `eth0` if a host has one link only; on nodes `pod-…` to pods, so that a prefix finds them. */
function deviceOf(host: Host, peer: Host): string {
  if (!isNode(host)) return 'eth0'
  return ['outside', 'gateway', 'node-a', 'node-b'].includes(peer) ? `to-${peer}` : `pod-${peer.replace('pod-', '')}`
}

const links: readonly Link<Host>[] = pairs.map(([near, far]) => {
  const end = (host: Host, peer: Host) => ({
    host,
    device: deviceOf(host, peer),
    ips: families.map((family) => addressOf[host][family]),
  })
  return [end(near, far), end(far, near)]
})

/** Interfaces with a small MTU. Only the outside's own end has the usual one, so that it does not know of it beforehand. */
const smallMtu: Partial<Record<Host, readonly string[]>> = {
  'node-a': ['to-node-b', 'to-outside'],
  'node-b': ['to-node-a'],
}

function linesOf(host: Host): string[] {
  const mtuLines = (smallMtu[host] ?? []).map((device) => `link set ${device} mtu 1400`)
  return [...mtuLines, ...routesOf(host)]
}

function routesOf(host: Host): string[] {
  const gateway = defaultRoute[host]
  return families.flatMap((family) => {
    // Onlink: the other end may not be up yet, and then nothing seems to lead to it.
    const way = `route add default via ${addressOf[gateway][family]} dev ${deviceOf(host, gateway)} onlink`
    switch (host) {
      case 'node-a':
        return [
          way,
          `route add ${podCidr['node-b'][family]} via ${addressOf['node-b'][family]} dev to-node-b onlink`,
          addressLine(secondAddress[family], 'lo'),
          addressLine(ownExternalAddress[family], 'lo'),
        ]
      case 'gateway':
        // Every address of these ranges is the gateway's own: it answers whatever reaches it.
        return [
          way,
          ...[serviceCidr, addedServiceCidr, loadBalancerCidr, externalCidr].map(
            (cidr) => `route add local ${cidr[family]} dev lo`,
          ),
        ]
      default:
        return [way]
    }
  })
}

export const topology = {
  hosts,
  links,
  roles: { 'node-a': 'router', 'node-b': 'router', gateway: 'gateway' },
  lines: Object.fromEntries(hosts.map((host) => [host, linesOf(host)])) as Record<Host, string[]>,
} as const satisfies LabPlan<Host>
