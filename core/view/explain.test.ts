import { localv1 } from '@kpng/api'
import { expect, test } from 'vitest'
import { Store } from '../store/index.js'
import { type EndpointInit, endpoint, node, service } from '../testing/objects.js'
import { explainService, serviceFacts } from './explain.js'

function storeWith(of: localv1.Service, ...endpoints: readonly [ip: string, init?: EndpointInit][]): Store {
  const store = new Store()
  store.update((transaction) => {
    transaction.setNode(node('a', 'zone-1'))
    transaction.setService(of)
    transaction.setEndpoints({
      ...{ namespace: 'default', name: 'web-1', service: of.name },
      endpoints: endpoints.map(([ip, init]) => endpoint(ip, init)),
    })
  })
  return store
}

/** `address: uses`, or `address: reason`. */
const uses = (store: Store, path = 'default/web') =>
  explainService(store, path, 'a').endpoints.map(({ ips, scopes, reason }) => `${ips}: ${reason ?? scopes.join(' ')}`)

test('each endpoint has its uses, or the reason why it has none', () => {
  const store = storeWith(
    service('web'),
    ['10.0.0.1', { node: 'a' }],
    ['10.0.0.2', { ready: false, serving: false }],
    ['10.0.0.3', { ready: false, terminating: true }],
    ['10.0.0.4', { ports: [{ name: 'https', port: 8443 }] }],
  )
  expect(uses(store)).toEqual([
    '10.0.0.1: internal external cluster',
    '10.0.0.2: not-ready',
    '10.0.0.3: terminating',
    '10.0.0.4: no-port',
  ])
})

test('hints and the Local policy', () => {
  const hinted = storeWith(
    service('web'),
    ['10.0.0.1', { zones: ['zone-1'], zone: 'zone-1' }],
    ['10.0.0.2', { zones: ['zone-2'], zone: 'zone-2' }],
  )
  expect(uses(hinted)).toEqual(['10.0.0.1: internal external cluster', '10.0.0.2: hints-other-zone'])
  const local = storeWith(
    service('web', { internalTrafficToLocal: true }),
    ['10.0.0.1', { node: 'a' }],
    ['10.0.0.2', { node: 'b' }],
  )
  expect(uses(local)).toEqual(['10.0.0.1: internal external cluster', '10.0.0.2: not-local'])
})

test('an endpoint that drains is terminating to somebody who asks', () => {
  const ports = [{ name: 'http', protocol: localv1.Protocol.UDP, port: 53, targetPort: 53 }]
  const store = storeWith(service('web', { ports }), ['10.0.0.1'], ['10.0.0.2', { ready: false, terminating: true }])
  expect(uses(store)[1]).toBe('10.0.0.2: terminating')
})

test('where an endpoint is from', () => {
  const store = storeWith(service('web'), ['10.0.0.1', { node: 'a', zone: 'zone-1', podName: 'web-x' }])
  expect(explainService(store, 'default/web', 'a').endpoints[0]).toMatchObject({
    ...{ slice: 'web-1', pod: 'web-x', node: 'a', zone: 'zone-1', isLocal: true, ports: [8080] },
    ...{ ready: true, serving: true, terminating: false },
  })
})

test('a Service that is not known: those with nearly its name, and its name elsewhere first', () => {
  const store = storeWith(service('web'))
  store.update((transaction) => transaction.setService(service('wep', { namespace: 'shop' })))
  expect(explainService(store, 'default/wep', 'a')).toEqual({
    ...{ service: 'default/wep', isKnown: false, endpoints: [] },
    nearest: ['shop/wep', 'default/web'],
  })
})

test('the facts of a Service count what explain lists', () => {
  const init = { ready: false, serving: false }
  const store = storeWith(
    service('web'),
    ['10.0.0.1'],
    ['10.0.0.2', init],
    ['10.0.0.3', init],
    ['10.0.0.4', { ready: false, terminating: true }],
  )
  expect(serviceFacts(store, 'default/web', 'a', 1)).toEqual({
    total: 4,
    leftOut: { 'not-ready': 2, terminating: 1 },
    reasons: new Map([
      ['10.0.0.2', 'not-ready'],
      ['10.0.0.3', 'not-ready'],
      ['10.0.0.4', 'terminating'],
    ]),
    onlyStandIns: false,
  })
  expect(serviceFacts(store, 'default/other', 'a', 1)).toBeUndefined()
  const standIns = storeWith(service('web'), ['10.0.0.1', { ready: false, terminating: true }])
  expect(serviceFacts(standIns, 'default/web', 'a', 1)).toMatchObject({ total: 1, onlyStandIns: true, leftOut: {} })
  const allReady = storeWith(service('web'), ['10.0.0.1'], ['10.0.0.2'])
  expect(serviceFacts(allReady, 'default/web', 'a', 2)).toMatchObject({ total: 2, onlyStandIns: false, leftOut: {} })
})
