import { FrontendTable } from '@kpng/dataplane'
import { addressBytes } from '@kpng/linux/nftables'
import { describe, expect, test } from 'vitest'
import { change, endpoint, fullSync, ips, type TestService, tcp, view } from '../../dataplane/testing/objects.js'
import { Affinity } from './affinity.js'
import { ElementState } from './elements/element-state.js'
import { endpointData, frontendKey } from './elements/frontend-elements.js'
import { settingsOf } from './options.js'

/** The two addresses at which the service is reached from outside. */
const places = [
  { address: '192.0.2.1', port: 80 },
  { address: '172.30.0.1', port: 30080 },
]

/** The endpoints 10.0.0.1, which is here, and 10.0.0.2, which is elsewhere, each with clients at both places. */
const remembered = new Map(
  places.flatMap(({ address, port }) =>
    [1, 2].map((number): [string, string] => [
      addressBytes(`172.30.0.${number}`) +
        frontendKey({ kind: 'externalIP', family: 'IPv4', address, protocol: 'tcp', port }),
      endpointData({ ip: `10.0.0.${number}`, port: 8080 }),
    ]),
  ),
)

const policy = (local: boolean, init: Partial<TestService> = {}): TestService => ({
  name: 'web',
  externalTrafficToLocal: local,
  sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 60 } },
  ips: { clusterIps: ips('10.96.0.1'), loadBalancerIps: ips('192.0.2.1') },
  ports: [tcp(80, { nodePort: 30080 })],
  endpoints: [
    endpoint('10.0.0.1', { local: true }),
    endpoint('10.0.0.2', local ? { scopes: ['internal', 'cluster'] } : {}),
  ],
  ...init,
})

/** Of which endpoints clients are released, and in which families that is looked for. */
function released(before: TestService, after: TestService | undefined) {
  const of = view([before])
  const table = new FrontendTable()
  const machine = { families: ['IPv4'], addresses: [] } as const
  table.apply(of, fullSync, machine)
  const state = new ElementState(settingsOf())
  state.rebuild(table)
  const affinity = new Affinity()
  affinity.reset(table)
  const changes = table.apply(of, change(of, 'web', after), machine)
  state.change(changes, table)
  const looked = affinity.note(changes.frontends)
  const endpoints = [...affinity.stale('ip', remembered, state, affinity.takeLost()).values()].map((data) =>
    data.charCodeAt(3),
  )
  return { looked, endpoints }
}

describe('clients are released', () => {
  test('when their endpoint goes (39)', () => {
    const rest = policy(false, { endpoints: [endpoint('10.0.0.1')] })
    expect(released(policy(false), rest)).toEqual({ looked: ['ip'], endpoints: [2, 2] })
  })
  test('when the service goes, or remembers nobody any more', () => {
    const forgetful = policy(false, { sessionAffinity: { case: undefined } })
    for (const after of [undefined, forgetful]) {
      expect(released(policy(false), after)).toEqual({ looked: ['ip'], endpoints: [1, 2, 1, 2] })
    }
  })
  test('by endpoints elsewhere, when the policy becomes Local (33)', () => {
    expect(released(policy(false), policy(true))).toEqual({ looked: ['ip'], endpoints: [2, 2] })
  })
  test('by an endpoint that moved to another node, under policy Local (33)', () => {
    const moved = policy(true, { endpoints: [1, 2].map((number) => endpoint(`10.0.0.${number}`, elsewhere)) })
    expect(released(policy(true), moved)).toEqual({ looked: ['ip'], endpoints: [1, 1] })
  })
  test('by nobody, when the policy becomes Cluster', () => {
    expect(released(policy(true), policy(false)).endpoints).toEqual([])
  })
  test('by nobody, when an endpoint comes', () => {
    const more = policy(true, { endpoints: [...(policy(true).endpoints ?? []), endpoint('10.0.0.3', elsewhere)] })
    expect(released(policy(true), more)).toEqual({ looked: [], endpoints: [] })
  })
})

const elsewhere = { scopes: ['internal', 'cluster'] } as const
