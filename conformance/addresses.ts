import { type Family, families } from '@kpng/api'

// The address plan: where everything in the lab lives. Cases and the lab both read it, so a case never spells an address twice.

/** How the names of cells, cases and slices end. */
export const familySuffix: Readonly<Record<Family, 'v4' | 'v6'>> = { IPv4: 'v4', IPv6: 'v6' }

/** One address of each family. */
export type DualAddress = Readonly<Record<Family, string>>
export const ipsOf = (address: DualAddress): string[] => families.map((family) => address[family])

/** Namespaces of the lab. `pod-a` and `pod-b` only ask; `a1` … `b2` are endpoints, and may ask too (hairpin). */
export const hosts = ['node-a', 'node-b', 'pod-a', 'a1', 'a2', 'pod-b', 'b1', 'b2', 'outside', 'gateway'] as const
export type Host = (typeof hosts)[number]

/** What serves: the pods, and `node-a` for endpoints in the host's own network. */
export type Server = 'a1' | 'a2' | 'b1' | 'b2' | 'node-a'

export const addressOf: Readonly<Record<Host, DualAddress>> = {
  'node-a': { IPv4: '172.30.0.1', IPv6: 'fd00:30::1' },
  'node-b': { IPv4: '172.30.0.2', IPv6: 'fd00:30::2' },
  'pod-a': { IPv4: '10.244.1.10', IPv6: 'fd00:10:244:1::10' },
  a1: { IPv4: '10.244.1.11', IPv6: 'fd00:10:244:1::11' },
  a2: { IPv4: '10.244.1.12', IPv6: 'fd00:10:244:1::12' },
  'pod-b': { IPv4: '10.244.2.10', IPv6: 'fd00:10:244:2::10' },
  b1: { IPv4: '10.244.2.11', IPv6: 'fd00:10:244:2::11' },
  b2: { IPv4: '10.244.2.12', IPv6: 'fd00:10:244:2::12' },
  outside: { IPv4: '203.0.113.9', IPv6: '2001:db8:113::9' },
  gateway: { IPv4: '172.30.0.254', IPv6: 'fd00:30::254' },
}

/** Where node ports are served. */
export const nodeA = addressOf['node-a']

/** A second address of node-a, which is not in its Node object: node ports must not be served there. */
export const secondAddress: DualAddress = { IPv4: '172.30.0.101', IPv6: 'fd00:30::101' }
/** A third one, used as an external IP that is the node's own. */
export const ownExternalAddress: DualAddress = { IPv4: '172.30.0.102', IPv6: 'fd00:30::102' }

export const clusterCidr: DualAddress = { IPv4: '10.244.0.0/16', IPv6: 'fd00:10:244::/48' }
export const podCidr: Readonly<Record<'node-a' | 'node-b', DualAddress>> = {
  'node-a': { IPv4: '10.244.1.0/24', IPv6: 'fd00:10:244:1::/64' },
  'node-b': { IPv4: '10.244.2.0/24', IPv6: 'fd00:10:244:2::/64' },
}
export const zoneOf = { 'node-a': 'zone-1', 'node-b': 'zone-2' } as const

export const serviceCidr: DualAddress = { IPv4: '10.96.0.0/16', IPv6: 'fd00:10:96::/112' }
/** A range for cluster IPs that is added to the cluster. */
export const addedServiceCidr: DualAddress = { IPv4: '10.97.0.0/24', IPv6: 'fd00:10:97::/112' }
/** Load-balancer and external IPs are routed to node-a from everywhere, and from there to the gateway. */
export const loadBalancerCidr: DualAddress = { IPv4: '198.51.100.0/24', IPv6: '2001:db8:100::/64' }
export const externalCidr: DualAddress = { IPv4: '192.0.2.0/24', IPv6: '2001:db8:2::/64' }

// Each Service of the cases has a number, and its addresses and node ports follow from it.

export const clusterIp = (number: number): DualAddress => ({
  IPv4: `10.96.${1 + (number >> 8)}.${number & 255}`,
  IPv6: `fd00:10:96::${(0x100 + number).toString(16)}`,
})
export const loadBalancerIp = (number: number): DualAddress => ({
  IPv4: `198.51.100.${number}`,
  IPv6: `2001:db8:100::${number.toString(16)}`,
})
export const externalIp = (number: number): DualAddress => ({
  IPv4: `192.0.2.${number}`,
  IPv6: `2001:db8:2::${number.toString(16)}`,
})
export const nodePort = (number: number): number => 30_000 + number
export const healthCheckNodePort = (number: number): number => 31_000 + number

/** The ports that every pod serves, TCP and UDP. */
export const podPorts = [8080, 8081, 9090] as const
