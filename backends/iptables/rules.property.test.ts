import { families, familyOf } from '@kpng/api'
import type { Changes } from '@kpng/client'
import { clientOf, endpointKey, FrontendTable, routeOf } from '@kpng/dataplane'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { drawnService, playServices, type ServiceStep, serviceStep } from '../../dataplane/testing/drawn-services.js'
import { fullSync, thisNode, view } from '../../dataplane/testing/objects.js'
import { heldIn } from './held.js'
import { settingsOf } from './options.js'
import { changeInput, fullInput } from './restore.js'
import { RuleState } from './rule-state.js'
import { FakeIptables } from './testing/fake-iptables.js'
import { walk } from './testing/walk.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: ['172.30.0.9'] } as const
const settings = settingsOf({ detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd00:244::/32'] } })

const service = drawnService(['198.51.100.1', '198.51.100.2', '10.96.0.1'], [80, 53])
  // Whole addresses are shared with the ports of other Services, but not as cluster IPs, and without source ranges.
  .map((drawn) =>
    drawn.mapIp ? { ...drawn, ips: { ...drawn.ips, clusterIps: { v4: [], v6: [] } }, ipFilters: [] } : drawn,
  )
const addressStep = fc.record({ addresses: fc.constantFrom(['172.30.0.1'], ['10.1.1.1', 'fd00:30::1']) })
const step = fc.oneof({ weight: 10, arbitrary: serviceStep(service) }, { weight: 1, arbitrary: addressStep })
type Step = ServiceStep | { addresses: readonly string[] }

/** Changes a view, and says what changed. */
function play(state: ReturnType<typeof view>, round: readonly Step[]): Changes {
  for (const each of round) if ('addresses' in each) state.node = thisNode({ addresses: [...each.addresses] })
  const steps = round.flatMap((each) => ('addresses' in each ? [] : [each]))
  return { ...fullSync, full: false, services: playServices(state, steps), node: true }
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
)
