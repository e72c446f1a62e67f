import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import type { Changes, ServiceEndpoints } from '@kpng/client'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { endpointKey, type Frontend, frontendId } from './frontend.js'
import { FrontendTable } from './frontend-table.js'
import { fullSync, thisNode, view } from './testing/objects.js'
import { type ExpectedFrontend, expectedFrontends } from './testing/oracle.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: ['172.30.0.9'] } as const

const some = <T>(...values: T[]) => fc.subarray(values)
const maybe = (weight: number) => fc.nat(99).map((dice) => dice < weight)

// Few addresses and ports, so that Services get in each other's way.
const clusterIps = fc.record({ v4: some('10.96.0.1', '10.96.0.2'), v6: some('fd00:96::1') })
const otherIps = fc.record({
  v4: some('198.51.100.1', '198.51.100.2', '10.96.0.1', '127.0.0.1', '169.254.1.1'),
  v6: some('2001:db8::1', 'fd00:96::1', '::1'),
})
const scopes = fc.option(fc.record({ internal: maybe(70), external: maybe(60), cluster: maybe(60) }), {
  nil: undefined,
  freq: 5,
})
const endpoint = fc.record({
  ips: fc.record({ v4: some('10.244.1.1', '10.244.1.2', '127.0.0.1'), v6: some('fd00:244::1', 'fe80::1') }),
  local: maybe(40),
  scopes,
  portOverrides: fc.oneof(
    fc.constant([]),
    fc.array(fc.record({ name: fc.constantFrom('a', 'b'), port: fc.constantFrom(0, 8080, 9090), scopes }), {
      maxLength: 2,
    }),
  ),
})
const port = fc.record({
  name: fc.constantFrom('a', 'b'),
  protocol: fc.constantFrom(localv1.Protocol.TCP, localv1.Protocol.UDP),
  port: fc.constantFrom(80, 53),
  targetPort: fc.constantFrom(8080, 9090),
  nodePort: fc.constantFrom(0, 0, 30_080, 30_081),
  servedFamilies: fc.option(fc.record({ v4: maybe(70), v6: maybe(50) }), { nil: undefined }),
})
const service = fc.record({
  ips: fc.record({ clusterIps, externalIps: otherIps, loadBalancerIps: otherIps }),
  ports: fc.array(port, { maxLength: 2 }),
  mapIp: maybe(15),
  externalTrafficToLocal: maybe(40),
  internalTrafficToLocal: maybe(30),
  ipFilters: fc.oneof(
    fc.constant([]),
    some('172.30.0.0/16', '203.0.113.0/24', '198.51.100.0/24', '2001:db8:9::/48').map((sourceRanges) =>
      sourceRanges.length === 0 ? [] : [{ sourceRanges }],
    ),
  ),
  seconds: fc.constantFrom(undefined, 0, 60),
})

type Drawn = typeof service extends fc.Arbitrary<infer T> ? T : never
type DrawnEndpoint = typeof endpoint extends fc.Arbitrary<infer T> ? T : never

function itemOf(name: string, { seconds, ...init }: Drawn, endpoints: readonly DrawnEndpoint[]): ServiceEndpoints {
  const sessionAffinity =
    seconds === undefined ? {} : { sessionAffinity: { case: 'clientIp' as const, value: { timeoutSeconds: seconds } } }
  return {
    service: create(localv1.ServiceSchema, { namespace: 'default', name, ...init, ...sessionAffinity } as never),
    endpoints: endpoints.map((each) => create(localv1.EndpointSchema, each as never)),
  }
}

/** A frontend in the oracle's words. */
function inOracleWords(frontend: Frontend): ExpectedFrontend {
  const { inside, outside } = frontend
  return {
    service: frontend.service,
    kind: frontend.kind,
    inside: inside.endpoints.map(endpointKey),
    outside: outside.endpoints.map(endpointKey),
    insideOtherwise: inside.otherwise,
    outsideOtherwise: outside.otherwise,
    allowed: frontend.allowedSources?.map(({ text }) => text).sort(),
    seconds: frontend.sessionAffinitySeconds,
    masquerade: frontend.masquerade,
  }
}

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      service,
      endpoints: fc.array(endpoint, { maxLength: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ remove: fc.constantFrom('a', 'b', 'c') }) },
  { weight: 1, arbitrary: fc.record({ addresses: fc.constantFrom(['172.30.0.1'], ['10.1.1.1', 'fd00:30::1']) }) },
  { weight: 1, arbitrary: fc.record({ full: fc.constant(true) }) },
)

describe('FrontendTable', () => {
  it('equals an independent full computation after any sequence of changes, and names exactly what changed', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 8 }),
        (rounds) => {
          const table = new FrontendTable()
          const state = view([])
          const followed = new Map<string, ExpectedFrontend>()
          table.apply(state, fullSync, machine)
          for (const round of rounds) {
            const services: Changes['services'] & Map<string, unknown> = new Map()
            let full = false
            for (const change of round) {
              if ('full' in change) full = true
              else if ('addresses' in change) state.node = thisNode({ addresses: [...change.addresses] })
              else {
                const name = 'remove' in change ? change.remove : change.name
                const path = `default/${name}`
                const before = state.services.get(path)
                const after = 'remove' in change ? undefined : itemOf(name, change.service, change.endpoints)
                if (after) state.services.set(path, after)
                else state.services.delete(path)
                services.set(path, { before, after } as never)
              }
            }
            const changes = table.apply(state, { ...fullSync, full, services, node: true }, machine)
            const expected = expectedFrontends(state)
            expect(new Map([...table.all()].map((each) => [frontendId(each), inOracleWords(each)]))).toEqual(expected)
            expect(table.size).toBe(expected.size)
            for (const { before, after } of changes.frontends) {
              const id = frontendId((after ?? before) as Frontend)
              expect(before && inOracleWords(before)).toEqual(followed.get(id))
              if (after) followed.set(id, inOracleWords(after))
              else followed.delete(id)
            }
            expect(followed).toEqual(expected)
          }
        },
      ),
      { numRuns: 400 },
    )
  })

  it('says nothing when a view says the same again', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(service, fc.array(endpoint, { maxLength: 3 })), { maxLength: 3 }), (drawn) => {
        const table = new FrontendTable()
        const state = view([])
        for (const [index, [init, endpoints]] of drawn.entries()) {
          state.services.set(`default/s${index}`, itemOf(`s${index}`, init, endpoints))
        }
        table.apply(state, fullSync, machine)
        for (const [index, [init, endpoints]] of drawn.entries()) {
          state.services.set(`default/s${index}`, itemOf(`s${index}`, init, endpoints))
        }
        expect(table.apply(state, fullSync, machine).frontends).toEqual([])
      }),
    )
  })
})
