import type { RequestReport } from '@kpng/core/sources/kube'
import { expect, test } from 'vitest'
import { RequestFeed } from './request-feed.js'

const request = (status: number): RequestReport => ({ method: 'GET', host: 'a:1', status, durationMs: 1 })

test('what was sent before anybody asked is told first, and once', () => {
  const feed = new RequestFeed()
  const told: (number | undefined)[] = []
  feed.report(request(200))
  feed.report(request(201))
  feed.observe(({ status }) => told.push(status))
  feed.report(request(202))
  expect(told).toEqual([200, 201, 202])
})

test('where nobody ever asks, it does not grow', () => {
  const feed = new RequestFeed()
  for (let count = 0; count < 5000; count++) feed.report(request(200))
  let told = 0
  feed.observe(() => told++)
  expect(told).toBe(1000)
})
