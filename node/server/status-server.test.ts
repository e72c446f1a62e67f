import { type OutgoingHttpHeaders, request } from 'node:http'
import { silentLog } from '@kpng/api'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, test } from 'vitest'
import { recordingLog } from '../../core/testing/until.js'
import { resolveSettings } from '../config/resolve.js'
import { configz, flagz } from '../config/show.js'
import { listen } from './listen.js'
import { knownNames, refuseUnknownHosts } from './refusal.js'
import { type StatusHandlerOptions, statusHandler } from './status-server.js'

const stops: AbortController[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort()
})

async function start(options: Partial<StatusHandlerOptions> = {}) {
  const stop = new AbortController()
  stops.push(stop)
  const resolved = resolveSettings({ file: { conntrackMin: 7 } })
  let level = 2
  const handler = statusHandler({
    mode: 'nftables',
    registry: new Registry(),
    configz: () => configz(resolved),
    flagz: () => flagz(resolved),
    status: { version: '1.2.3', startedMs: 0, now: () => 3_725_000, lines: () => ({ 'Node name': 'worker-1' }) },
    verbosity: {
      get: () => level,
      set: (next) => {
        level = next
      },
    },
    log: silentLog,
    ...options,
  })
  const server = await listen({
    name: 'metrics',
    address: '127.0.0.1:0',
    handler,
    refuse: refuseUnknownHosts('worker-1'),
    log: silentLog,
    signal: stop.signal,
  })
  const base = `http://127.0.0.1:${server.port}`
  const get = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${base}${path}`, init)
    return { status: response.status, text: await response.text(), headers: response.headers }
  }
  return { get, base, level: () => level }
}

describe('pages', () => {
  test('/healthz, /proxyMode and /metrics', async () => {
    const registry = new Registry()
    const { get } = await start({ registry })
    expect(await get('/healthz')).toMatchObject({ status: 200, text: 'ok' })
    expect(await get('/proxyMode')).toMatchObject({ status: 200, text: 'nftables' })
    const metrics = await get('/metrics')
    expect([metrics.status, metrics.headers.get('content-type')]).toEqual([200, registry.contentType])
  })

  test('/configz is what is in force', async () => {
    const { get } = await start()
    expect(JSON.parse((await get('/configz')).text)).toMatchObject({
      'kubeproxy.config.k8s.io': { conntrack: { min: 7 }, kind: 'KubeProxyConfiguration' },
      'kpng.origins': { 'conntrack.min': 'file' },
    })
  })

  test('/flagz and /statusz are for people', async () => {
    const { get } = await start()
    expect((await get('/flagz')).text).toContain('conntrack-min=7 (file)\n')
    expect((await get('/statusz')).text).toBe(
      '\nkpng statusz\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.\n\n' +
        `Started: 1970-01-01T00:00:00.000Z\nUp: 1 hr 2 min 5 sec\nNode version: ${process.version}\nBinary version: 1.2.3\nNode name: worker-1\n` +
        'Paths: /configz /flagz /healthz /metrics /proxyMode /statusz\n',
    )
  })

  test.each(['/', '/nothing', '/constructor', '/__proto__', '//', '/%'])('%s is not there', async (path) => {
    expect((await (await start()).get(path)).status).toBe(404)
  })

  test('one that fails says so and hurts nobody else', async () => {
    const { lines, log } = recordingLog()
    const registry = { contentType: 'text/plain', metrics: () => Promise.reject(new Error('a counter is broken')) }
    const { get } = await start({ registry, log })
    expect(await get('/metrics')).toMatchObject({ status: 500, text: 'a counter is broken\n' })
    expect(lines).toHaveLength(1)
    expect((await get('/healthz')).status).toBe(200)
  })
})

describe('the verbosity', () => {
  test('is read and set', async () => {
    const { get, level } = await start()
    expect((await get('/debug/flags/v')).text).toBe('2\n')
    expect((await get('/debug/flags/v', { method: 'PUT', body: '4\n' })).status).toBe(200)
    expect(level()).toBe(4)
  })

  test.each(['', 'loud', '-1', '4.5', '9'.repeat(100)])('%j is refused', async (body) => {
    const { get, level } = await start()
    expect((await get('/debug/flags/v', { method: 'PUT', body })).status).toBe(400)
    expect(level()).toBe(2)
  })

  test('a body that is much too long is not read', async () => {
    const { get, level } = await start()
    expect((await get('/debug/flags/v', { method: 'PUT', body: '9'.repeat(10_000) })).status).toBe(413)
    expect(level()).toBe(2)
  })

  test('other methods are refused', async () => {
    expect((await (await start()).get('/debug/flags/v', { method: 'POST', body: '4' })).status).toBe(405)
  })
})

describe('profiles', () => {
  test('are off unless asked for', async () => {
    const { get } = await start()
    expect([(await get('/debug/profile?seconds=1')).status, (await get('/debug/heap')).status]).toEqual([403, 403])
  })

  test('of the CPU have samples; one at a time', async () => {
    const { get } = await start({ profiling: true })
    const first = get('/debug/profile?seconds=0.3')
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect((await get('/debug/profile?seconds=0.3')).status).toBe(409)
    const profile = await first
    expect(profile.headers.get('content-disposition')).toMatch(/\.cpuprofile"$/)
    const { nodes, samples, startTime, endTime } = JSON.parse(profile.text)
    expect(nodes.length).toBeGreaterThan(0)
    expect(samples.length).toBeGreaterThan(0)
    expect(endTime - startTime).toBeGreaterThan(250_000)
  })

  test.each(['0', '-1', '301', 'x', ''])('of %j seconds are refused', async (seconds) => {
    const { get } = await start({ profiling: true })
    expect((await get(`/debug/profile?seconds=${seconds}`)).status).toBe(400)
  })

  test('end when nobody waits for them', async () => {
    const { get, base } = await start({ profiling: true })
    const leaving = request(`${base}/debug/profile?seconds=60`)
    leaving.on('error', () => {})
    leaving.end()
    await new Promise((resolve) => setTimeout(resolve, 100))
    leaving.destroy()
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect((await get('/debug/profile?seconds=0.05')).status).toBe(200)
  })

  test('of the heap are snapshots', async () => {
    const { get } = await start({ profiling: true })
    const { text, headers } = await get('/debug/heap')
    expect(headers.get('content-disposition')).toMatch(/\.heapsnapshot"$/)
    expect(text.startsWith('{"snapshot":')).toBe(true)
    expect(text.trimEnd().endsWith('}')).toBe(true)
  })
})

describe('a page in a browser', () => {
  const asked = (base: string, path: string, headers: OutgoingHttpHeaders, method = 'GET', body = '') =>
    new Promise<number | undefined>((resolve, reject) => {
      const asking = request(`${base}${path}`, { method, headers }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      asking.on('error', reject)
      asking.end(body)
    })

  test('whose name was made to resolve to this node learns and changes nothing', async () => {
    const { base, level } = await start({ profiling: true })
    const headers = { host: 'evil.example:10249', origin: 'http://evil.example:10249', 'sec-fetch-site': 'same-origin' }
    for (const path of ['/metrics', '/configz', '/debug/heap', '/debug/profile?seconds=0.1', '/nothing']) {
      expect(await asked(base, path, headers)).toBe(403)
    }
    expect(await asked(base, '/debug/flags/v', headers, 'PUT', '9')).toBe(403)
    expect(level()).toBe(2)
  })

  test('of another site cannot change the verbosity or take a profile', async () => {
    const { base, level } = await start({ profiling: true })
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
    expect(await asked(base, '/debug/profile?seconds=0.1', headers)).toBe(403)
    expect(await asked(base, '/debug/flags/v', { origin: 'http://evil.example' }, 'PUT', '9')).toBe(403)
    expect(level()).toBe(2)
    // A link shows the page only to the person who follows it.
    expect(await asked(base, '/statusz', headers)).toBe(200)
  })

  test.each(['worker-1:10249', 'localhost:8080', '10.0.0.5:10249', 'kpng.kube-system.svc.cluster.local:10249'])(
    'and Prometheus may call this node %s',
    async (host) => expect(await asked((await start()).base, '/metrics', { host })).toBe(200),
  )
})

test('the names of a node', () => {
  const resolvConf =
    'nameserver 10.96.0.10\nsearch kube-system.svc.k8s.corp svc.k8s.corp corp.example\noptions ndots:5\n'
  expect(
    knownNames('worker-1', { hostname: 'Host-1', resolvConf, allowed: ' .metrics.example, node.example,,.' }),
  ).toEqual([
    ...['host-1', 'host-1.kube-system.svc.k8s.corp', 'host-1.svc.k8s.corp', 'host-1.corp.example'],
    ...['worker-1', 'worker-1.kube-system.svc.k8s.corp', 'worker-1.svc.k8s.corp', 'worker-1.corp.example'],
    ...['.svc', '.svc.cluster.local', '.svc.k8s.corp', '.metrics.example', 'node.example'],
  ])
  expect(knownNames(undefined, { hostname: '', resolvConf: 'search .', allowed: '' })).toEqual([
    '.svc',
    '.svc.cluster.local',
  ])
})
