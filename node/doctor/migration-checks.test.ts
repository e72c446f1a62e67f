import { expect, test } from 'vitest'
import type { ServiceFact } from './cluster-facts.js'
import {
  foreignRules,
  forwardPolicy,
  ipvsSettings,
  localhostNodePorts,
  secondaryAddresses,
} from './migration-checks.js'

const services: ServiceFact[] = [
  {
    ...{ path: 'shop/web', hasSelector: true, nodePorts: [30080], awaitsLoadBalancer: false, isServed: true },
    ...{ endpoints: 1, readyEndpoints: 1, fields: [] },
  },
]

test.each([
  ['iptables', {}, services, 1],
  ['iptables', { iptables: { localhostNodePorts: true } }, services, 1],
  ['iptables', { iptables: { localhostNodePorts: false } }, services, 0],
  ['iptables', {}, [], 0],
  ['ipvs', {}, services, 0],
  ['nftables', {}, services, 0],
] as const)('node ports on localhost: %s %o', (from, configuration, all, count) => {
  expect(localhostNodePorts({ from, configuration, services: all })).toHaveLength(count)
})

test.each([
  ['iptables', {}, ['10.0.0.1', '192.168.0.1'], ['192.168.0.1']],
  ['ipvs', {}, ['10.0.0.1', 'fd00::1', 'fd00::2'], ['fd00::2']],
  ['iptables', {}, ['10.0.0.1', 'fd00::1'], undefined],
  ['iptables', { nodePortAddresses: ['10.0.0.0/8'] }, ['10.0.0.1', '192.168.0.1'], undefined],
  ['iptables', { nodePortAddresses: [] }, ['10.0.0.1', '192.168.0.1'], ['192.168.0.1']],
  ['nftables', {}, ['10.0.0.1', '192.168.0.1'], undefined],
] as const)('node ports on other addresses: %s %o %o', (from, configuration, addresses, examples) => {
  const [finding] = secondaryAddresses({ from, configuration, services, addresses })
  expect(finding?.examples).toEqual(examples)
})

test.each([
  ['-A MY-RULES -s 10.0.0.0/8 -j KUBE-MARK-MASQ', true],
  ['-A INPUT -g KUBE-NODEPORTS', true],
  ['-A MY-RULES -m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT', true],
  ['-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES', false],
  ['-A KUBE-SERVICES -j KUBE-SVC-ABC', false],
  ['-A INPUT -j KUBE-FIREWALL', false],
  ['-A INPUT -m comment --comment "not -j KUBE-SERVICES" -j ACCEPT', false],
  ['-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT', false],
])('a firewall rule %s', (rule, isForeign) => {
  const saved = `*filter\n:INPUT ACCEPT [0:0]\n${rule}\nCOMMIT\n`
  expect(foreignRules({ iptables: [{ program: 'iptables-nft', saved }] })).toHaveLength(isForeign ? 1 : 0)
})

test.each([
  ['iptables', 'DROP', 1],
  ['iptables', 'ACCEPT', 0],
  ['nftables', 'DROP', 0],
] as const)('from %s with the policy %s', (from, policy, count) => {
  const iptables = [{ program: 'iptables-nft', saved: `*filter\n:FORWARD ${policy} [0:0]\nCOMMIT\n` }]
  expect(forwardPolicy({ from, iptables })).toHaveLength(count)
})

test.each([
  ['iptables', { ipvs: { scheduler: 'lc' } }, []],
  ['ipvs', {}, ['Connections']],
  ['ipvs', { ipvs: { scheduler: 'rr', tcpTimeout: '0s' } }, ['Connections']],
  ['ipvs', { ipvs: { scheduler: 'lc', udpTimeout: '5m' } }, ['ipvs.scheduler', 'ipvs.udpTimeout', 'Connections']],
] as const)('settings of %s: %o', (from, configuration, words) => {
  expect(ipvsSettings({ from, configuration }).map(({ what }) => what.split(' ')[0])).toEqual(words)
})
