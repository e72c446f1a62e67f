import type { LiveService } from '@kpng/api'
import { expect, test } from 'vitest'
import { liveRow } from '../testing/live-row.js'
import { addressText, newRow, traits, updateRow } from './rows.js'

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

test('a verdict that this page does not know is unknown, and not fine', () => {
  const { verdict: _, ...older } = liveRow('shop/web')
  expect(newRow('shop/web', older as LiveService).service.verdict).toBe('unknown')
  expect(newRow('shop/web', { ...older, verdict: 'splendid' } as unknown as LiveService).service.verdict).toBe(
    'unknown',
  )
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
