import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import type { Changes, ServiceEndpoints } from '@kpng/client'
import fc from 'fast-check'
import type { view } from './objects.js'

// Services for property tests of backends. There are few addresses, ports and names, so that Services and ports get in each other's way.

const some = <T>(...values: T[]) => fc.subarray(values)
const maybe = (weight: number) => fc.nat(99).map((dice) => dice < weight)

const endpoint = fc.record({
  ips: fc.record({ v4: some('10.244.1.1', '10.244.1.2'), v6: some('fd00:244::1') }),
  local: maybe(40),
  scopes: fc.option(fc.record({ internal: maybe(70), external: maybe(60), cluster: maybe(60) }), {
    nil: undefined,
    freq: 5,
  }),
})

const portOf = (ports: readonly number[]) =>
  fc.record({
    name: fc.constantFrom('a', 'b'),
    protocol: fc.constantFrom(localv1.Protocol.TCP, localv1.Protocol.UDP),
    port: fc.constantFrom(...ports),
    targetPort: fc.constantFrom(8080, 9090),
    nodePort: fc.constantFrom(0, 0, 30_080, 30_081),
    servedFamilies: fc.option(fc.record({ v4: maybe(70), v6: maybe(50) }), { nil: undefined }),
  })

/** @param otherIps external and load-balancer IPs (IPv4); one may be another Service's cluster IP */
export function drawnService(otherIps: readonly string[], ports: readonly number[]) {
  const others = fc.record({ v4: some(...otherIps), v6: some('2001:db8::1') })
  const clusterIps = fc.record({ v4: some('10.96.0.1', '10.96.0.2'), v6: some('fd00:96::1') })
  return fc.record({
    ips: fc.record({ clusterIps, externalIps: others, loadBalancerIps: others }),
    ports: fc.array(portOf(ports), { maxLength: 2 }),
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
}

type Drawn<T> = T extends fc.Arbitrary<infer Value> ? Value : never
export type ServiceStep =
  | { name: string; service: Drawn<ReturnType<typeof drawnService>>; endpoints: Drawn<typeof endpoint>[] }
  | { remove: string }

const names = fc.constantFrom('a', 'b', 'c')

/** A Service is written, with other fields and endpoints than before, or removed. */
export const serviceStep = (service: ReturnType<typeof drawnService>): fc.Arbitrary<ServiceStep> =>
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ name: names, service, endpoints: fc.array(endpoint, { maxLength: 3 }) }) },
    { weight: 2, arbitrary: fc.record({ remove: names }) },
  )

/** Changes a view, and says which Services changed. */
export function playServices(state: ReturnType<typeof view>, steps: readonly ServiceStep[]): Changes['services'] {
  const services = new Map<string, { before: ServiceEndpoints | undefined; after: ServiceEndpoints | undefined }>()
  for (const step of steps) {
    const name = 'remove' in step ? step.remove : step.name
    const path = `default/${name}`
    const before = services.get(path)?.before ?? state.services.get(path)
    const after =
      'remove' in step
        ? undefined
        : {
            service: create(localv1.ServiceSchema, { namespace: 'default', name, ...step.service } as never),
            endpoints: step.endpoints.map((each) => create(localv1.EndpointSchema, each as never)),
          }
    if (after) state.services.set(path, after)
    else state.services.delete(path)
    services.set(path, { before, after })
  }
  return services
}
