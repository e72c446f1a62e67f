import { expect, test } from 'vitest'
import type { Read } from './finding.js'
import { nodeCauses, type Traffic } from './node-causes.js'
import type { TrafficFacts } from './node-facts.js'

const bad: Read<TrafficFacts> = {
  sysctls: { value: { 'net.ipv4.ip_forward': '0', 'net.ipv6.conf.all.forwarding': '0' } },
  addresses: { value: ['192.0.2.1', '2001:db8::1'] },
  strictInterfaces: { value: ['eth0'] },
  conntrack: { value: { count: 999, max: 1000 } },
}
const traffic: Traffic = { families: ['IPv4'], isForwarded: true, leavesNode: true }

const forwarding4 = ['stops', 'net.ipv4.ip_forward is 0: this node does not forward IPv4 packets.']
const forwarding6 = ['stops', 'net.ipv6.conf.all.forwarding is 0: this node does not forward IPv6 packets.']
const strict = ['may', 'The kernel checks source addresses strictly (rp_filter is 1) on 1 interface.']
const full = ['stops', 'The table of tracked connections is 99 % full (999 of 1000).']

test.each<[string, Partial<Traffic>, string[][]]>([
  ['IPv4', {}, [forwarding4, strict, full]],
  ['IPv6', { families: ['IPv6'] }, [forwarding6, full]],
  ['packets of the node itself', { isForwarded: false }, [strict, full]],
  ['endpoints on this node', { leavesNode: false }, [forwarding4, full]],
])('%s', (_, change, expected) => {
  const found = nodeCauses({ ...traffic, ...change }, bad)
  expect(found.map(({ level, what }) => [level === 'problem' ? 'stops' : 'may', what])).toEqual(expected)
})

test('what is not known is no cause', () => {
  const unknown = { unknown: 'this is win32' }
  const facts = { sysctls: unknown, addresses: unknown, strictInterfaces: unknown, conntrack: unknown }
  expect(nodeCauses(traffic, facts)).toEqual([])
})
