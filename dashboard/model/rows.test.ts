import type { LiveService } from '@kpng/api'
import { expect, test } from 'vitest'
import { liveRow } from '../testing/live-row.js'
import { addressText, newRow, reasonText, traits, updateRow, whyText } from './rows.js'

test('a row can be searched by name, address, and address with port', () => {
  const { searchText } = newRow(
    'shop/web',
    liveRow('shop/web', { clusterIps: ['10.96.0.10', 'fd00:96::a'], ports: ['80:30080/tcp', '53/udp'] }),
  )
  for (const text of ['shop/web', '10.96.0.10:80', '[fd00:96::a]:53', '30080', '53/udp'])
    expect(searchText).toContain(text)
})

test('a changed address can be searched at once', () => {
  const row = newRow('shop/web', liveRow('shop/web', { clusterIps: ['10.96.0.10'] }))
  updateRow(row, liveRow('shop/web', { clusterIps: ['10.96.0.11'] }), 5)
  expect(row.searchText).toContain('10.96.0.11')
  expect(row.searchText).not.toContain('10.96.0.10')
  expect(row.seenAt).toBe(5)
})

test.each([
  [2, 'serving'],
  [0, 'refused'],
])('an older agent that sends no state: with %i endpoints it is %s', (endpoints, state) => {
  const { state: _, ...older } = liveRow('shop/web', { endpoints })
  expect(newRow('shop/web', older as LiveService).service.state).toBe(state)
})

test.each<[Partial<LiveService>, string]>([
  [{ state: 'refused', total: 0 }, 'no endpoint in the cluster'],
  [{ state: 'refused', total: 3 }, 'no endpoint is ready'],
  [{ state: 'refused' }, 'no endpoint'],
  [{ state: 'dropped', internalTrafficPolicy: 'Local' }, 'no endpoint on this node'],
  [{ state: 'dropped', externalTrafficPolicy: 'Local' }, 'outside traffic: none on this node'],
  [{ state: 'partly', leftOut: { 'not-ready': 1, duplicate: 2 } }, '1 not ready, 2 duplicate'],
  [{ state: 'serving', problems: ['192.0.2.1:80/tcp belongs to another'] }, '192.0.2.1:80/tcp belongs to another'],
  [{ state: 'serving' }, ''],
])('%j: %s', (service, why) => {
  expect(whyText(liveRow('shop/web', service))).toBe(why)
})

test('a reason that this page does not know is shown as it is', () => {
  expect(reasonText('not-ready')).toBe('not ready')
  expect(reasonText('on-the-moon')).toBe('on the moon')
})

test('addresses and traits', () => {
  expect(addressText(liveRow('a/b', { clusterIps: [] }))).toBe('')
  expect(addressText(liveRow('a/b', { ports: ['1/tcp', '2/tcp', '3/tcp', '4/tcp'] }))).toBe('10.96.0.10:1, 2, 3, …')
  expect(traits(liveRow('a/b', { clusterIps: [], externalTrafficPolicy: 'Local', type: 'LoadBalancer' }))).toEqual([
    'headless',
    'Local',
    'load balancer',
  ])
  expect(traits(liveRow('a/b', { externalTrafficPolicy: 'Local' }))).toEqual([])
})
