import type { LiveSync } from '@kpng/api'
import { expect, test } from 'vitest'
import { changeText, medianOf, otherServices, spansOf, totalMs } from './spans.js'

const sync = (given: Partial<LiveSync> = {}): LiveSync => ({
  ...{ number: 1, at: '2026-11-16T10:00:00Z', durationMs: 2, full: false, services: [], moreServices: 0 },
  ...given,
})
const times = { trigger: -9, received: -4, stored: -3, viewed: -2.5, arrived: -1, steps: [] }
const texts = (of: LiveSync) => spansOf(of).map(({ name, from, to }) => `${name} ${from}…${to}`)

test('spans follow each other from the change in the cluster to the end of the sync', () => {
  expect(texts(sync({ times }))).toEqual([
    'cluster -9…-4',
    'source -4…-3',
    'store -3…-2.5',
    'view -2.5…-1',
    'queue -1…0',
    'sync 0…2',
  ])
})

test('a time that nobody knows joins two spans', () => {
  expect(texts(sync({ times: { received: -4, arrived: -1, steps: [] } }))).toEqual([
    'source -4…-1',
    'queue -1…0',
    'sync 0…2',
  ])
  expect(texts(sync())).toEqual(['sync 0…2'])
})

test('clocks that disagree make no negative span', () => {
  expect(texts(sync({ times: { trigger: 5, received: -1, steps: [] } }))).toEqual([
    'cluster 0…0',
    'source -1…0',
    'sync 0…2',
  ])
})

test('the total is from the event to the end of the sync, else what is known', () => {
  expect(totalMs(sync({ times }))).toBe(6)
  expect(totalMs(sync({ latencyMs: 11 }))).toBe(11)
  expect(totalMs(sync())).toBe(2)
})

test('the median of a span leaves out syncs without it', () => {
  const three = [-4, -8, -5].map((received) => sync({ times: { received, stored: -3, steps: [] } }))
  expect(medianOf([...three, sync()], 'source')).toBe(2)
  expect(medianOf([], 'source')).toBeUndefined()
})

test.each<[Partial<LiveSync>, string]>([
  [{ sentence: '10.244.3.4 of a/b is not ready', services: [{ service: 'a/b' }] }, '10.244.3.4 is not ready'],
  [{ sentence: 'a/b: 1 endpoint more, 1 fewer', services: [{ service: 'a/b' }] }, '1 endpoint more, 1 fewer'],
  [{ sentence: 'a/b was deleted', services: [{ service: 'a/b' }] }, 'was deleted'],
  [{ services: [{ service: 'a/b', after: 2 }] }, 'new, with 2 endpoints'],
  [{ services: [{ service: 'a/b', before: 2 }] }, 'the Service is gone'],
  [{ services: [{ service: 'a/b', before: 2, after: 1 }] }, '2 → 1 endpoints'],
  [{ full: true }, 'everything was compared'],
  [{ error: 'no' }, 'the sync failed'],
])('%j: %s', (given, text) => {
  expect(changeText(sync(given))).toBe(text)
})

test('of a sync that changed several Services, each has its own words', () => {
  const services = [
    { service: 'a/b', before: 2, after: 1, sentence: '10.244.3.4 of a/b is not ready' },
    { service: 'a/c', before: 2, after: 5 },
  ]
  const of14 = sync({ sentence: '14 Services were changed', services, moreServices: 12 })
  expect(changeText(of14, 'a/b')).toBe('10.244.3.4 is not ready')
  expect(changeText(of14, 'a/c')).toBe('2 → 5 endpoints')
  expect(changeText(of14)).toBe('14 Services were changed')
})

test('counts the other Services of a sync', () => {
  expect(otherServices(sync({ services: [{ service: 'a/b' }, { service: 'a/c' }], moreServices: 7 }))).toBe(8)
})
