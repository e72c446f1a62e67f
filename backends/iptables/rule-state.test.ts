import { FrontendTable } from '@kpng/dataplane'
import { describe, expect, test } from 'vitest'
import {
  change,
  endpoint,
  fullSync,
  ips,
  type TestService,
  tcp,
  thisNode,
  view,
} from '../../dataplane/testing/objects.js'
import { settingsOf } from './options.js'
import { changeInput, fullInput } from './restore.js'
import { RuleState } from './rule-state.js'
import { FakeIptables } from './testing/fake-iptables.js'

// Which chains a change writes.

const machine = { families: ['IPv4', 'IPv6'] as const, addresses: [] }
const settings = settingsOf({ detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } })

const web = (...addresses: string[]): TestService => ({
  name: 'web',
  ips: { clusterIps: ips('10.96.0.1'), externalIps: ips('198.51.100.1') },
  ports: [tcp(80, { nodePort: 30080 })],
  endpoints: addresses.map((address) => endpoint(address)),
})
const other = { name: 'other', ips: { clusterIps: ips('10.96.0.2') }, endpoints: [endpoint('10.244.9.9')] }

function start(...services: TestService[]) {
  const of = view(services)
  const table = new FrontendTable(settings.dataplane)
  table.apply(of, fullSync, machine)
  const state = new RuleState('IPv4', {
    ...settings,
    detectLocal: settings.dataplane.detectLocal,
    randomFully: true,
    counters: false,
  })
  state.rebuild(table)
  const iptables = new FakeIptables()
  iptables.restore(fullInput(state.chains, settings.names, iptables.saved))
  /** The chains that the input of a change names, without their hashes. */
  const touched = (changes: ReturnType<typeof change>) => {
    const input = changeInput(state.change(table.apply(of, changes, machine).frontends, table))
    iptables.restore(input)
    const named = (list: readonly string[]) => list.map((chain) => chain.replace(/-[A-Z2-7]{16}$/, '')).sort()
    return { nat: named(iptables.declared.nat), filter: named(iptables.declared.filter) }
  }
  return { of, touched, iptables }
}

describe('a change writes only the chains that differ', () => {
  test('one endpoint of three is replaced: the draw, the new endpoint, and the old one, which goes', () => {
    const { of, touched, iptables } = start(web('10.244.1.1', '10.244.1.2', '10.244.1.3'), other)
    const before = iptables.chains('nat').size
    expect(touched(change(of, 'web', web('10.244.1.1', '10.244.1.2', '10.244.1.4')))).toEqual({
      nat: ['KUBE-SEP', 'KUBE-SEP', 'KUBE-SVC'],
      filter: [],
    })
    expect(iptables.chains('nat').size).toBe(before)
  })

  test('one endpoint more', () => {
    const { of, touched } = start(web('10.244.1.1'), other)
    expect(touched(change(of, 'web', web('10.244.1.1', '10.244.1.2')))).toEqual({
      nat: ['KUBE-SEP', 'KUBE-SVC'],
      filter: [],
    })
  })

  test('the last endpoint goes: the Service is refused', () => {
    const { of, touched } = start(web('10.244.1.1'), other)
    expect(touched(change(of, 'web', web()))).toEqual({
      nat: ['KUBE-EXT', 'KUBE-NODEPORTS', 'KUBE-SEP', 'KUBE-SERVICES', 'KUBE-SVC'],
      filter: ['KUBE-EXTERNAL-SERVICES', 'KUBE-SERVICES'],
    })
  })

  test('a Service with a cluster IP comes', () => {
    const { of, touched } = start(other)
    const added = { name: 'new', ips: { clusterIps: ips('10.96.0.3') }, endpoints: [endpoint('10.244.1.1')] }
    expect(touched(change(of, 'new', added))).toEqual({ nat: ['KUBE-SEP', 'KUBE-SERVICES', 'KUBE-SVC'], filter: [] })
  })

  test('nothing for a change that this family does not see, and for one that changes nothing', () => {
    const { of, touched } = start(web('10.244.1.1'), other)
    const v6 = { name: 'six', ips: { clusterIps: ips('fd00:96::1') }, endpoints: [endpoint('fd00:244::1')] }
    expect(touched(change(of, 'six', v6))).toEqual({ nat: [], filter: [] })
    expect(touched(change(of, 'web', web('10.244.1.1')))).toEqual({ nat: [], filter: [] })
  })

  test('the primary address of the node moves: where node ports are open', () => {
    const { of, touched } = start(web('10.244.1.1'), other)
    of.node = thisNode({ addresses: ['172.30.0.7'] })
    expect(touched({ ...fullSync, full: false, node: true })).toEqual({ nat: ['KUBE-SERVICES'], filter: [] })
  })
})

describe('a large cluster', () => {
  const addresses = (count: number) => Array.from({ length: count }, (_, index) => `10.244.2.${index}`)
  const endpointChains = ({ iptables }: ReturnType<typeof start>) =>
    [...iptables.chains('nat').keys()].filter((chain) => chain.startsWith('KUBE-SEP-')).length

  test('more than 1,000 endpoints: they have no chains of their own; with 1,000 they have', () => {
    const services = (count: number): TestService[] =>
      Array.from({ length: 10 }, (_, index) => ({
        name: `s${index}`,
        ips: { clusterIps: ips(`10.96.1.${index}`) },
        endpoints: addresses(count).map((address) => endpoint(address)),
      }))
    const nearly = start(...services(100), other)
    expect(endpointChains(nearly)).toBe(0)
    nearly.touched(change(nearly.of, 'other', undefined))
    expect(endpointChains(nearly)).toBe(1000)
    nearly.touched(change(nearly.of, 'other', other))
    expect(endpointChains(nearly)).toBe(0)
  })

  test('one endpoint of a Service is replaced: one chain', () => {
    const services = start(
      web(...addresses(200), '10.244.3.1'),
      ...['a', 'b', 'c', 'd', 'e'].map((name, index) => ({
        ...web(...addresses(200)),
        name,
        ips: { clusterIps: ips(`10.96.2.${index}`) },
        ports: [tcp(80)],
      })),
    )
    expect(services.touched(change(services.of, 'web', web(...addresses(200), '10.244.3.2')))).toEqual({
      nat: ['KUBE-SVC'],
      filter: [],
    })
  })
})

describe('a full write', () => {
  test('adopts what is there: stale chains go, jumps are not doubled, chains of others stay', () => {
    const { iptables, of } = start(web('10.244.1.1'), other)
    iptables.restore(`*nat
:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]
:KUBE-SVC-BBBBBBBBBBBBBBBB - [0:0]
:KUBE-KUBELET-CANARY - [0:0]
:CNI-DN-1 - [0:0]
-A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-SEP-AAAAAAAAAAAAAAAA
-A CNI-DN-1 -j KUBE-SVC-BBBBBBBBBBBBBBBB
COMMIT
`)
    const table = new FrontendTable(settings.dataplane)
    table.apply(of, fullSync, machine)
    const again = new RuleState('IPv4', {
      ...settings,
      detectLocal: settings.dataplane.detectLocal,
      randomFully: true,
      counters: false,
    })
    again.rebuild(table)
    const before = [...iptables.chains('nat').keys()]
    iptables.restore(fullInput(again.chains, settings.names, iptables.saved))
    const gone = before.filter((chain) => !iptables.chains('nat').has(chain))
    // What a rule of somebody else leads to cannot be deleted.
    expect(gone.sort()).toEqual(['KUBE-SEP-AAAAAAAAAAAAAAAA', 'KUBE-SVC-AAAAAAAAAAAAAAAA'])
    for (const chain of ['PREROUTING', 'OUTPUT', 'POSTROUTING'])
      expect(iptables.chains('nat').get(chain)).toHaveLength(1)
  })
})
