import { silentLog } from '@kpng/api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Listening, listen } from '../server/listen.js'
import { healthHandler } from './health-server.js'
import { ProxyHealth } from './proxy-health.js'

let now: number
/** How far somebody has set the clock of the machine. */
let jumpMs: number
let health: ProxyHealth
const answers: string[] = []
let server: Listening
const stop = new AbortController()

beforeEach(async () => {
  now = Date.parse('2026-01-02T03:04:05.000Z')
  jumpMs = 0
  health = new ProxyHealth({ timeoutMs: 60_000, now: () => now + jumpMs, monotonicNow: () => now })
  answers.length = 0
  const handler = healthHandler({ health, onAnswer: (page, code) => answers.push(`${page} ${code}`) })
  server = await listen({ name: 'health', address: '127.0.0.1:0', handler, log: silentLog, signal: stop.signal })
})
afterEach(() => server.close())

const get = (page: string) => fetch(`http://127.0.0.1:${server.port}/${page}`)

describe('the answer', () => {
  test('has the JSON of kube-proxy', async () => {
    const response = await get('healthz')
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await response.text()).toBe(
      '{"lastUpdated":"2026-01-02T03:04:05.000Z","currentTime":"2026-01-02T03:04:05.000Z","nodeEligible":true,"healthy":true,' +
        '"status":{"IPv4":{"lastUpdated":"2026-01-02T03:04:05.000Z","healthy":true},"IPv6":{"lastUpdated":"2026-01-02T03:04:05.000Z","healthy":true}}}',
    )
    expect(Object.keys((await (await get('livez')).json()) as object)).not.toContain('nodeEligible')
  })

  test('says when it last worked only when it does not', async () => {
    now += 600_000
    expect(await (await get('healthz')).json()).toMatchObject({ lastUpdated: '2026-01-02T03:14:05.000Z' })
    health.queued()
    now += 60_000
    expect(await (await get('healthz')).json()).toMatchObject({
      lastUpdated: '2026-01-02T03:04:05.000Z',
      currentTime: '2026-01-02T03:15:05.000Z',
    })
  })

  test('there is nothing else', async () => {
    expect((await get('metrics')).status).toBe(404)
    expect(answers).toEqual([])
  })
})

describe('codes', () => {
  const codes = async () => [(await get('healthz')).status, (await get('livez?verbose')).status]

  test('a queued change that is late: 503, until it is synced', async () => {
    health.queued()
    now += 59_999
    health.queued()
    expect(await codes()).toEqual([200, 200])
    now += 1
    expect(await codes()).toEqual([503, 503])
    health.synced()
    expect(await codes()).toEqual([200, 200])
    expect(answers).toEqual(['healthz 200', 'livez 200', 'healthz 503', 'livez 503', 'healthz 200', 'livez 200'])
  })

  test.each([3_600_000, -3_600_000])(
    'a clock that jumps by %d ms makes nothing late, and hides nothing',
    async (ms) => {
      health.queued()
      jumpMs = ms
      expect(await codes()).toEqual([200, 200])
      expect(await (await get('healthz')).json()).toMatchObject({ currentTime: new Date(now + ms).toISOString() })
      now += 60_000
      expect(await codes()).toEqual([503, 503])
    },
  )

  test('being idle is healthy', async () => {
    now += 86_400_000
    expect(await codes()).toEqual([200, 200])
  })

  test('a node that is being deleted: 503 on /healthz alone', async () => {
    health.setNodeEligible(false)
    expect(await codes()).toEqual([503, 200])
    expect(await (await get('healthz')).json()).toMatchObject({ nodeEligible: false, healthy: true })
    expect(health.healthy).toBe(true)
  })
})
