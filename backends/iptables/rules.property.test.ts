import { create } from '@bufbuild/protobuf'
import { families, familyOf, localv1 } from '@kpng/api'
import type { Changes, ServiceEndpoints } from '@kpng/client'
import { clientOf, endpointKey, FrontendTable, routeOf } from '@kpng/dataplane'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fullSync, thisNode, view } from '../../dataplane/testing/objects.js'
import { heldIn } from './held.js'
import { settingsOf } from './options.js'
import { changeInput, fullInput } from './restore.js'
import { RuleState } from './rule-state.js'
import { FakeIptables } from './testing/fake-iptables.js'
import { walk } from './testing/walk.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: ['172.30.0.9'] } as const
const settings = settingsOf({ detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd00:244::/32'] } })

const some = <T>(...values: T[]) => fc.subarray(values)
const maybe = (weight: number) => fc.nat(99).map((dice) => dice < weight)

// Few addresses, ports and names, so that Services and ports get in each other's way.
const clusterIps = fc.record({ v4: some('10.96.0.1', '10.96.0.2'), v6: some('fd00:96::1') })
const otherIps = fc.record({ v4: some('198.51.100.1', '198.51.100.2', '10.96.0.1'), v6: some('2001:db8::1') })
const scopes = fc.option(fc.record({ internal: maybe(70), external: maybe(60), cluster: maybe(60) }), {
  nil: undefined,
  freq: 5,
})
const endpoint = fc.record({
  ips: fc.record({ v4: some('10.244.1.1', '10.244.1.2'), v6: some('fd00:244::1') }),
  local: maybe(40),
  scopes,
})
const port = fc.record({
  name: fc.constantFrom('a', 'b'),
  protocol: fc.constantFrom(localv1.Protocol.TCP, localv1.Protocol.UDP),
  port: fc.constantFrom(80, 53),
  targetPort: fc.constantFrom(8080, 9090),
  nodePort: fc.constantFrom(0, 0, 30_080, 30_081),
  servedFamilies: fc.option(fc.record({ v4: maybe(70), v6: maybe(50) }), { nil: undefined }),
})
const service = fc
  .record({
    ips: fc.record({ clusterIps, externalIps: otherIps, loadBalancerIps: otherIps }),
    ports: fc.array(port, { maxLength: 2 }),
    mapIp: maybe(15),
    externalTrafficToLocal: maybe(40),
    internalTrafficToLocal: maybe(30),
    ipFilters: fc.oneof(
      fc.constant([]),
      // None holds an address of a Service: the node's own packets would be allowed if they came from there.
      some('172.30.0.0/16', '203.0.113.0/24', '2001:db8:9::/48').map((sourceRanges) =>
        sourceRanges.length === 0 ? [] : [{ sourceRanges }],
      ),
    ),
    sessionAffinity: fc.constantFrom({ case: undefined }, { case: 'clientIp' as const, value: { timeoutSeconds: 60 } }),
  })
  // Whole addresses are shared with the ports of other Services, but not as cluster IPs, and without source ranges.
  .map((drawn) =>
    drawn.mapIp ? { ...drawn, ips: { ...drawn.ips, clusterIps: { v4: [], v6: [] } }, ipFilters: [] } : drawn,
  )
const names = fc.constantFrom('a', 'b', 'c')
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ name: names, service, endpoints: fc.array(endpoint, { maxLength: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ remove: names }) },
  { weight: 1, arbitrary: fc.record({ addresses: fc.constantFrom(['172.30.0.1'], ['10.1.1.1', 'fd00:30::1']) }) },
)

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** Changes a view, and says what changed. */
function play(state: ReturnType<typeof view>, round: readonly Step[]): Changes {
  const services = new Map<string, { before: ServiceEndpoints | undefined; after: ServiceEndpoints | undefined }>()
  for (const each of round) {
    if ('addresses' in each) {
      state.node = thisNode({ addresses: [...each.addresses] })
      continue
    }
    const name = 'remove' in each ? each.remove : each.name
    const path = `default/${name}`
    const before = services.get(path)?.before ?? state.services.get(path)
    const after =
      'remove' in each
        ? undefined
        : {
            service: create(localv1.ServiceSchema, { namespace: 'default', name, ...each.service } as never),
            endpoints: each.endpoints.map((one) => create(localv1.EndpointSchema, one as never)),
          }
    if (after) state.services.set(path, after)
    else state.services.delete(path)
    services.set(path, { before, after })
  }
  return { ...fullSync, full: false, services, node: true }
}

const newState = (family: 'IPv4' | 'IPv6', largeClusterEndpoints: number) =>
  new RuleState(family, {
    ...{ ...settings, largeClusterEndpoints },
    detectLocal: settings.dataplane.detectLocal,
    randomFully: true,
    counters: true,
  })

/** Every client and destination that the drawn Services know of. */
const clients = ['10.244.7.7', '203.0.113.9', '172.30.0.1', '10.1.1.1', 'fd00:244::7', '2001:db8:9::9', 'fd00:30::1']
const destinations = [
  ...['10.96.0.1', '10.96.0.2', '198.51.100.1', '198.51.100.2', '172.30.0.1', '10.1.1.1'],
  ...['fd00:96::1', '2001:db8::1', 'fd00:30::1'],
]

test.each([
  ['', { largeClusterEndpoints: 1000, maxLines: Number.POSITIVE_INFINITY }],
  [' in a cluster that is large at times, in steps of few lines', { largeClusterEndpoints: 3, maxLines: 6 }],
])(
  'after any sequence of changes the chains equal a full write, and lead packets where the data plane says%s',
  (_, { largeClusterEndpoints, maxLines }) => {
    fc.assert(
      fc.property(
        fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 }),
        (rounds) => {
          const table = new FrontendTable(settings.dataplane)
          const state = view([])
          table.apply(state, fullSync, machine)
          const running = families.map((family) => ({
            family,
            state: newState(family, largeClusterEndpoints),
            iptables: new FakeIptables(),
          }))
          for (const one of running) {
            one.state.rebuild(table)
            one.iptables.restore(fullInput(one.state.chains, settings.names, one.iptables.saved, maxLines))
          }
          for (const round of rounds) {
            const { frontends } = table.apply(state, play(state, round), machine)
            for (const one of running) {
              one.iptables.restore(changeInput(one.state.change(frontends, table), maxLines))
              const fresh = new FakeIptables()
              const full = newState(one.family, largeClusterEndpoints)
              full.rebuild(table)
              fresh.restore(fullInput(full.chains, settings.names, fresh.saved, maxLines))
              for (const name of ['nat', 'filter'] as const) {
                expect(new Map([...one.iptables.chains(name)].sort())).toEqual(new Map([...fresh.chains(name)].sort()))
              }
            }
          }
          for (const { family, iptables } of running) {
            for (const frontend of table.all()) {
              if (frontend.family !== family) continue
              const held = heldIn(iptables.saved, settings.names, frontend)
              expect([frontend.id, [...(held?.inside.keys() ?? [])].sort()]).toEqual([
                frontend.id,
                frontend.inside.endpoints.map(endpointKey).sort(),
              ])
              expect([...(held?.outside.keys() ?? [])].sort()).toEqual(
                frontend.outside.endpoints.map(endpointKey).sort(),
              )
            }
            for (const from of clients.filter((ip) => familyOf(ip) === family)) {
              for (const to of destinations.filter((ip) => familyOf(ip) === family)) {
                for (const [protocol, number] of [
                  ['tcp', 80],
                  ['udp', 53],
                  ['tcp', 30_080],
                  ['udp', 30_081],
                ] as const) {
                  const client = { ...clientOf(table.node, from), ip: from }
                  const route = routeOf(table, { client, to, port: number, protocol })
                  // As in kube-proxy's iptables mode, there are no rules for these.
                  const isUnknown = route.why === 'no-such-port' || route.why === 'unallocated'
                  const isToNode = table.node.addresses.includes(to)
                  const seen = walk(iptables.saved, { client, to, port: number, protocol, isToNode })
                  const question = `${from} to ${to}:${number}/${protocol}`
                  expect([question, seen.outcome]).toEqual([question, isUnknown ? 'passed' : route.outcome])
                  expect(seen.endpoints).toEqual(route.endpoints.map(endpointKey).sort())
                }
              }
            }
          }
        },
      ),
      { numRuns: 40 },
    )
  },
  60_000,
)
