import { expect, test } from 'vitest'
import { liveRow } from '../testing/live-row.js'
import { liveService, MockCluster } from '../testing/mock-cluster.js'
import { newRow } from './rows.js'
import { arrange, type Filter, filterOf, filterText, looksLikeAddress, testOf } from './search.js'

const rows = [
  liveRow('default/web', { changedAt: '2026-11-16T10:00:00Z', total: 5 }),
  liveRow('shop/api', { verdict: 'refused', endpoints: 0, total: 9, clusterIps: ['10.96.0.11'] }),
  liveRow('shop/cart', { verdict: 'dropped', externalTrafficPolicy: 'Local', changedAt: '2026-11-16T11:00:00Z' }),
  liveRow('shop/dns', { ports: ['53/udp'], clusterIps: ['fd00:96::a'], sessionAffinity: true }),
  liveRow('shop/web', { verdict: 'differs', type: 'NodePort', ports: ['80:30080/tcp'] }),
].map((service) => newRow(`${service.namespace}/${service.name}`, service))

const shown = (filter: Partial<Filter>) =>
  arrange(rows, testOf({ query: '', states: new Set(), ...filter }), 'name').map(({ key }) => key)

test.each<[string, string[]]>([
  ['', ['default/web', 'shop/api', 'shop/cart', 'shop/dns', 'shop/web']],
  ['WEB', ['default/web', 'shop/web']],
  ['shop web', ['shop/web']],
  ['-shop', ['default/web']],
  ['- shop/a', ['shop/api']],
  ['10.96.0.11:80', ['shop/api']],
  ['[fd00:96::a]:53', ['shop/dns']],
  ['30080', ['shop/web']],
  ['refused', ['shop/api']],
  ['no-endpoints', ['shop/api']],
  ['local', ['shop/cart']],
  ['affinity', ['shop/dns']],
  ['udp ipv6', ['shop/dns']],
  ['node-port', ['shop/web']],
  ['-serving -shop/web', ['shop/api', 'shop/cart']],
  ['constructor', []],
])('"%s" finds %j', (query, keys) => {
  expect(shown({ query })).toEqual(keys)
})

test('states and words must both match', () => {
  expect(shown({ states: new Set(['refused', 'differs']) })).toEqual(['shop/api', 'shop/web'])
  expect(shown({ states: new Set(['refused', 'differs']), query: 'web' })).toEqual(['shop/web'])
})

test("an endpoint's address finds its Services", () => {
  const found = { address: '10.244.1.5', keys: new Set(['shop/cart']) }
  expect(shown({ query: '10.244.1.5', found })).toEqual(['shop/cart'])
  expect(shown({ query: '-10.244.1.5 shop', found })).not.toContain('shop/cart')
  expect(['10.244.1.5', 'fd00::1', '10.244.1', 'web', 'cafe'].map(looksLikeAddress)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ])
})

test.each([
  ['worst', ['shop/web', 'shop/api', 'shop/cart', 'default/web', 'shop/dns']],
  ['recent', ['shop/cart', 'default/web', 'shop/api', 'shop/dns', 'shop/web']],
  ['size', ['shop/api', 'default/web', 'shop/cart', 'shop/dns', 'shop/web']],
] as const)('order %s', (order, keys) => {
  expect(arrange(rows, undefined, order).map(({ key }) => key)).toEqual(keys)
})

test('every Service is in every order once', () => {
  const many = [...new MockCluster(500).services].map(([key, service]) => newRow(key, liveService(service)))
  for (const order of ['worst', 'recent', 'name', 'size'] as const) {
    expect(new Set(arrange(many, undefined, order)).size).toBe(500)
  }
})

test.each([
  ['', { query: '', states: [], order: 'worst' }],
  ['q=pay+-serving', { query: 'pay -serving', states: [], order: 'worst' }],
  [
    'q=10.96.0.10%3A80&state=partly,refused&order=name',
    { query: '10.96.0.10:80', states: ['partly', 'refused'], order: 'name' },
  ],
] as const)('the filter %j stands in the address, and is read from it', (text, { query, states, order }) => {
  const filter = { query, states: new Set(states), order }
  expect(filterText(filter)).toBe(text)
  expect(filterOf(text)).toEqual(filter)
})

test('an address of another version, or of nobody who means well, is read as far as it goes', () => {
  const text = `q=${'x'.repeat(10_000)}&state=refused,toString,none&order=constructor`
  expect(filterOf(text)).toEqual({ query: 'x'.repeat(200), states: new Set(['refused']), order: 'worst' })
})
