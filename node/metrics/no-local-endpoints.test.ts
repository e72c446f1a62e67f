import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { endpointAt, serviceWith, TestView } from '../testing/views.js'
import { NoLocalEndpointsTotal, noLocalEndpointsOf } from './no-local-endpoints.js'

type Init = Parameters<typeof serviceWith>[0] & object

const port = { name: 'http', port: 80, targetPort: 8080 }
const none = { 'internal/IPv4': 0, 'internal/IPv6': 0, 'external/IPv4': 0, 'external/IPv6': 0 }
const internal = { internalTrafficToLocal: true }
const external = { externalTrafficToLocal: true }
const both = { ...internal, ...external }
const elsewhere = endpointAt('10.0.0.1', { scopes: { cluster: true } })
const dual: Init = {
  ips: { clusterIps: { v4: ['10.96.0.1'], v6: ['fd00::1'] } },
  ports: [{ ...port, hasEndpoints: { v4: true, v6: true } }],
}

describe('one service', () => {
  test.each<[string, Init, Parameters<typeof serviceWith>[1] & object, Partial<typeof none>]>([
    ['no Local policy', {}, [], {}],
    ['internal, none here', internal, [elsewhere], { 'internal/IPv4': 1 }],
    ['external, none here', external, [elsewhere], { 'external/IPv4': 1 }],
    ['both, none here', both, [], { 'internal/IPv4': 1, 'external/IPv4': 1 }],
    ['both, one here', both, [endpointAt('10.0.0.1')], {}],
    ['none anywhere', { ...both, ports: [{ ...port, hasEndpoints: {} }] }, [], {}],
    ['a server that cannot tell', { ...internal, ports: [port] }, [], { 'internal/IPv4': 1 }],
    ['dual stack, IPv4 here', { ...internal, ...dual }, [endpointAt('10.0.0.1')], { 'internal/IPv6': 1 }],
    [
      'two ports, one of them served here',
      { ...internal, ports: [port, { ...port, name: 'other', port: 81, targetPort: 0 }] },
      [endpointAt('10.0.0.1', { portOverrides: [{ name: 'http', port: 8080 }] })],
      { 'internal/IPv4': 1 },
    ],
  ])('%s', (_, init, endpoints, expected) => {
    expect(noLocalEndpointsOf(serviceWith({ name: 'web', ...init } as Init, endpoints))).toEqual({
      ...none,
      ...expected,
    })
  })
})

test('any sequence of changes gives what a full count gives', () => {
  const states = [
    undefined,
    serviceWith({ name: 's' }),
    serviceWith({ name: 's', ...both }),
    serviceWith({ name: 's', ...internal }, [elsewhere]),
    serviceWith({ name: 's', ...both }, [endpointAt('10.0.0.1')]),
    serviceWith({ name: 's', ...external, ...dual } as Init, [endpointAt('10.0.0.1')]),
  ]
  const step = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom(...states), { noNullPrototype: true })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const view = new TestView()
      const totals = new NoLocalEndpointsTotal()
      for (const changed of steps) {
        totals.observe(view, view.change(changed))
        const full = new NoLocalEndpointsTotal()
        full.observe(view, view.change({}))
        expect(totals.total).toEqual(full.total)
      }
    }),
  )
})
