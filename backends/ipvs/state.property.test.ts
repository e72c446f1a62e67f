import { type Family, families, familyOf } from '@kpng/api'
import type { Changes } from '@kpng/client'
import { clientOf, endpointKey, FrontendTable, isMasqueraded, routeOf } from '@kpng/dataplane'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { drawnService, playServices, type ServiceStep, serviceStep } from '../../dataplane/testing/drawn-services.js'
import { fullSync, thisNode, view } from '../../dataplane/testing/objects.js'
import { type KnownServer, knownAfter, operationsFor } from './operations.js'
import { settingsOf } from './options.js'
import { placeOf } from './rules.js'
import { addressesByFamily, IpvsState, type StateInput, type Update } from './state.js'
import { walk } from './testing/walk.js'

const ownAddresses = ['172.30.0.1', '172.30.0.9', 'fd00:30::1']
const machine = { families: ['IPv4', 'IPv6'], addresses: ownAddresses } as const
const { dataplane } = settingsOf({
  detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd00:244::/32'] },
  nodePortAddresses: ['all'],
})

const none: { v4: string[]; v6: string[] } = { v4: [], v6: [] }
// 172.30.0.9 is one of the node's own.
const service = drawnService(['198.51.100.1', '172.30.0.9', '10.96.0.1'], [80, 53, 30_080])
  // A whole address that is the node's own would take the node's ports.
  .map((drawn) =>
    drawn.mapIp
      ? {
          ...drawn,
          ips: { ...drawn.ips, clusterIps: none, externalIps: { v4: ['198.51.100.1'], v6: [] }, loadBalancerIps: none },
        }
      : drawn,
  )
const step = serviceStep(service)

/** Changes a view, and says what changed. */
const play = (state: ReturnType<typeof view>, round: readonly ServiceStep[]): Changes => ({
  ...fullSync,
  full: false,
  services: playServices(state, round),
})

const input: StateInput = {
  ownAddresses: new Set(ownAddresses),
  nodePortAddresses: addressesByFamily(ownAddresses),
  schedulerOf: () => 'rr',
  serves: () => true,
}

const contentOf = (state: IpvsState) => ({
  servers: new Map([...state.servers].sort()),
  elements: families.map((family) =>
    [...state.elements(family)].map(({ set, key, value }) => `${set} ${key} ${value}`).sort(),
  ),
  addresses: [...state.addresses].sort(),
})

/** What the kernel holds if it does all that it is told, and refuses what it would refuse. */
class FakeKernel {
  readonly servers = new Map<string, KnownServer>()
  readonly elements: Record<Family, Set<string>> = { IPv4: new Set(), IPv6: new Set() }
  readonly addresses = new Set<string>()

  apply({ servers, elements, addresses }: Update): void {
    for (const { key, after } of servers) {
      const known = this.servers.get(key)
      if (!after) this.servers.delete(key)
      else this.servers.set(key, knownAfter(after, known, operationsFor(after, known).retired))
    }
    for (const family of families) {
      const text = ({ set, key, value }: Update['elements'][Family]['add'][number]) => `${set} ${key} ${value}`
      for (const element of elements[family].remove) expect(this.elements[family].delete(text(element))).toBe(true)
      for (const element of elements[family].add) {
        expect(this.elements[family].has(text(element))).toBe(false)
        this.elements[family].add(text(element))
      }
    }
    for (const address of addresses.remove) expect(this.addresses.delete(address)).toBe(true)
    for (const address of addresses.add) this.addresses.add(address)
  }
}

const clients = ['10.244.7.7', '203.0.113.9', '172.30.0.1', 'fd00:244::7', '2001:db8:9::9', 'fd00:30::1']
const destinations = [
  '10.96.0.1',
  '10.96.0.2',
  '10.96.9.9',
  '198.51.100.1',
  '172.30.0.9',
  'fd00:96::1',
  '2001:db8::1',
  'fd00:30::1',
]

test('after any sequence of changes the kernel holds what a fresh start gives, and packets go where the data plane says', () => {
  fc.assert(
    fc.property(fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 6 }), (rounds) => {
      const table = new FrontendTable(dataplane)
      const drawn = view([], ['10.96.0.0/16'])
      drawn.node = thisNode({ addresses: ownAddresses })
      table.apply(drawn, fullSync, machine)
      const running = new IpvsState(table)
      running.rebuild(input)
      const kernel = new FakeKernel()
      for (const round of rounds) {
        const { frontends } = table.apply(drawn, play(drawn, round), machine)
        kernel.apply(
          running.change(frontends.flatMap(({ before, after }) => [before, after].flatMap((each) => each?.id ?? []))),
        )
        const fresh = new IpvsState(table)
        fresh.rebuild(input)
        const { servers, elements, addresses } = contentOf(fresh)
        expect(contentOf(running)).toEqual({ servers, elements, addresses })
        expect([...kernel.addresses].sort()).toEqual(addresses)
        expect(families.map((family) => [...kernel.elements[family]].sort())).toEqual(elements)
        expect([...kernel.servers.keys()].sort()).toEqual([...servers.keys()])
        for (const [key, { destinations: there }] of kernel.servers) {
          const serving = [...there].filter(([, { weight }]) => weight === 1).map(([name]) => name)
          expect(serving.sort()).toEqual([...(servers.get(key)?.destinations.keys() ?? [])].sort())
        }
      }
      for (const from of clients) {
        for (const to of destinations.filter((ip) => familyOf(ip) === familyOf(from))) {
          for (const [protocol, number] of [
            ['tcp', 80],
            ['udp', 53],
            ['tcp', 30_080],
            ['udp', 30_081],
          ] as const) {
            const client = { ...clientOf(table.node, from), ip: from }
            const connection = { client, to, port: number, protocol }
            const route = routeOf(table, connection, { ownAddresses })
            const seen = walk(running, placeOf(familyOf(to), table.node, dataplane.detectLocal), connection)
            const question = `${from} to ${to}:${number}/${protocol}`
            // The interface has the address of a Service, so its other ports are refused by the node itself.
            const isOtherPort =
              (route.why === 'not-a-service' || route.why === 'unallocated') && [...running.addresses].includes(to)
            expect([question, seen.outcome]).toEqual([question, isOtherPort ? 'refused' : route.outcome])
            expect(seen.endpoints).toEqual(route.endpoints.map(endpointKey).sort())
            const [first] = route.endpoints
            if (!route.frontend || !first) continue
            // The packets that a node sends to its Services always come from an address of its own.
            const expected = client.kind === 'node' || isMasqueraded(route.frontend, client, first, table.node)
            expect([question, seen.isMasqueraded]).toEqual([question, expected])
          }
        }
      }
    }),
    { numRuns: 40 },
  )
}, 300_000)
