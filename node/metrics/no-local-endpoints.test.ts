import type { Changes } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { endpointAt, serviceWith, TestView } from '../testing/views.js'
import { NoLocalEndpointsTotal } from './no-local-endpoints.js'

type Init = Parameters<typeof serviceWith>[0] & object

const TCP = 1
const port = { name: 'http', protocol: TCP, port: 80, targetPort: 8080, nodePort: 30_080 }
const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const
const none = { 'internal/IPv4': 0, 'internal/IPv6': 0, 'external/IPv4': 0, 'external/IPv6': 0 }
const internal = { internalTrafficToLocal: true }
const external = { externalTrafficToLocal: true, ports: [{ ...port, servedFamilies: { v4: true } }] }
const both = { ...internal, ...external }
const elsewhere = endpointAt('10.0.0.1', { scopes: { cluster: true } })
const dual: Init = {
  ips: { clusterIps: { v4: ['10.96.0.1'], v6: ['fd00::1'] } },
  ports: [{ ...port, servedFamilies: { v4: true, v6: true } }],
}

/** What a table and a total that know nothing else say of a view. */
function totalOf(view: TestView, changes: Changes) {
  const frontends = new FrontendTable()
  frontends.apply(view, changes, machine)
  const total = new NoLocalEndpointsTotal(frontends)
  total.observe(view, changes)
  return total.total
}

describe('one service', () => {
  test.each<[string, Init, Parameters<typeof serviceWith>[1] & object, Partial<typeof none>]>([
    ['no Local policy', {}, [], {}],
    ['internal, none here', internal, [elsewhere], { 'internal/IPv4': 1 }],
    ['external, none here', external, [elsewhere], { 'external/IPv4': 1 }],
    ['both, none here', both, [], { 'internal/IPv4': 1, 'external/IPv4': 1 }],
    ['both, one here', both, [endpointAt('10.0.0.1')], {}],
    ['none anywhere', { ...both, ports: [{ ...port, servedFamilies: {} }] }, [], {}],
    ['a server that cannot tell, none', { ...internal, ports: [port] }, [], {}],
    ['a server that cannot tell, some elsewhere', { ...internal, ports: [port] }, [elsewhere], { 'internal/IPv4': 1 }],
    ['external, without an address for it', { externalTrafficToLocal: true }, [elsewhere], {}],
    ['dual stack, IPv4 here', { ...internal, ...dual }, [endpointAt('10.0.0.1')], { 'internal/IPv6': 1 }],
    [
      'two ports, one of them served here',
      { ...internal, ports: [port, { ...port, name: 'other', port: 81, targetPort: 0, servedFamilies: { v4: true } }] },
      [endpointAt('10.0.0.1', { portOverrides: [{ name: 'http', port: 8080 }] })],
      { 'internal/IPv4': 1 },
    ],
  ])('%s', (_, init, endpoints, expected) => {
    const view = new TestView()
    const changes = view.change({ 'default/web': serviceWith({ name: 'web', ...init } as Init, endpoints) })
    expect(totalOf(view, { ...changes, full: true })).toEqual({ ...none, ...expected })
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
  const step = fc.dictionary(fc.constantFrom('default/a', 'default/b'), fc.constantFrom(...states), {
    noNullPrototype: true,
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const view = new TestView()
      const frontends = new FrontendTable()
      const totals = new NoLocalEndpointsTotal(frontends)
      for (const changed of steps) {
        const changes = view.change(changed)
        frontends.apply(view, changes, machine)
        totals.observe(view, changes)
        expect(totals.total).toEqual(totalOf(view, view.change({}, { full: true })))
      }
    }),
  )
})
