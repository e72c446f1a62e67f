import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { SourceStatus } from '@kpng/client'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type CoreAgentOptions, startCoreAgent } from './core-agent.js'
import type { ApiRequest } from './metrics/index.js'

let stop: AbortController
beforeEach(() => {
  stop = new AbortController()
})
afterEach(() => stop.abort())

const state = { synced: false, revision: 3 }
const anyPort = '127.0.0.1:0'

const both = { healthzBindAddress: anyPort, metricsBindAddress: anyPort }

async function start(options: Partial<CoreAgentOptions> = {}, addresses: Partial<typeof both> = both) {
  const { ports } = await startCoreAgent({
    version: '1.2.3',
    log: silentLog,
    signal: stop.signal,
    ...addresses,
    state,
    readings: { apiEvents: () => 4, skippedObjects: () => 5, storeRevision: () => 6 },
    counters: { watchers: { local: 7, global: 8 }, changeSetsSent: 9, itemsSent: 10 },
    ...options,
  })
  const get = async (port: number | undefined, path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: response.status, text: await response.text() }
  }
  return {
    ports,
    health: (path: string) => get(ports.healthz, path),
    page: (path: string) => get(ports.metrics, path),
  }
}

describe('health', () => {
  test.each(['/healthz', '/readyz', '/readyz?verbose'])('%s waits for a complete state', async (path) => {
    const now = { ...state }
    const { health } = await start({ state: now })
    const before = await health(path)
    expect([before.status, JSON.parse(before.text)]).toEqual([
      503,
      { synced: false, revision: 3, currentTime: expect.any(String) },
    ])
    now.synced = true
    expect(await health(path)).toMatchObject({ status: 200, text: expect.stringContaining('"synced":true') })
  })

  test('a core that lost its source stays ready, and says what is stale', async () => {
    const source = new SourceStatus()
    source.watch('services').lost()
    Object.defineProperty(source.watch('services'), 'changedAtMs', { value: performance.now() - 600_000 })
    const { health, page } = await start({ state: { ...state, synced: true }, readings: { source } })
    for (const path of ['/healthz', '/livez', '/readyz']) {
      const { status, text } = await health(path)
      expect([status, JSON.parse(text).source]).toMatchObject([
        200,
        { stale: true, reason: expect.stringMatching(/^Not connected since .*: services\.$/) },
      ])
    }
    expect((await page('/statusz')).text).toContain('\nStale: Not connected since ')
    expect((await page('/metrics')).text).toContain('kpng_source_connected{resource="services"} 0\n')
  })

  test('/livez does not wait: a restart would not bring the API server back', async () => {
    const { health } = await start({ state: { ...state } })
    expect(await health('/livez')).toMatchObject({ status: 200, text: expect.stringContaining('"synced":false') })
  })

  test.each(['/', '/metrics', '/healthz/etcd'])('%s is not there', async (path) => {
    expect((await (await start()).health(path)).status).toBe(404)
  })
})

describe('metrics', () => {
  test('are those of a core', async () => {
    const { page } = await start()
    const text = (await page('/metrics')).text
    for (const line of [
      `kpng_build_info{version="1.2.3",node_version="${process.version}"} 1`,
      'kpng_k8s_api_events_total 4',
      'kpng_skipped_objects_total 5',
      'kpng_store_revision 6',
      'kpng_watchers{kind="local"} 7',
      'kpng_watchers{kind="global"} 8',
      'kpng_change_sets_sent_total 9',
      'kpng_items_sent_total 10',
    ])
      expect(text).toContain(`${line}\n`)
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m)
    // Without a source that asks the API server there is nothing to say of it, and without rules nothing of them.
    expect(text).not.toMatch(/rest_client|kubeproxy_/)
  })

  const missing = spawnSync('promtool', ['--version']).error !== undefined
  if (missing) console.warn('Skipped: promtool is not installed. It is in the Debian package prometheus.')

  test.skipIf(missing)('are such as promtool accepts', async () => {
    const request: ApiRequest = { method: 'GET', host: '10.0.0.1:6443', status: 200, durationMs: 10 }
    const { page } = await start({ observeApiRequests: (observer) => observer(request) })
    const { text: input } = await page('/metrics')
    expect(input).toContain('rest_client_requests_total{code="200",method="GET",host="10.0.0.1:6443"} 1\n')
    const { stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { encoding: 'utf8', input })
    expect(`${stdout}${stderr}`).toBe('')
  })
})

describe('the pages beside them', () => {
  test('say how it is, and nothing about a proxy', async () => {
    const { page } = await start()
    expect((await page('/statusz')).text).toMatch(
      /Synced: false\nRevision: 3\nWatchers \(local\): 7\nWatchers \(global\): 8\nPaths: \/healthz \/metrics \/statusz\n$/,
    )
    for (const path of ['/proxyMode', '/configz', '/flagz']) expect((await page(path)).status).toBe(404)
  })

  test('profiles are there when asked for', async () => {
    expect((await (await start()).page('/debug/profile?seconds=0.1')).status).toBe(403)
    expect((await (await start({ profiling: true })).page('/debug/profile?seconds=0.1')).status).toBe(200)
  })
})

test.each([
  ['health', { healthzBindAddress: anyPort }, { healthz: expect.any(Number), metrics: undefined }],
  ['metrics', { metricsBindAddress: anyPort }, { healthz: undefined, metrics: expect.any(Number) }],
])('%s alone', async (_, addresses, expected) => {
  const { ports } = await start({}, addresses)
  expect({ healthz: ports.healthz, metrics: ports.metrics }).toEqual(expected)
})
