import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { create } from '@bufbuild/protobuf'
import { globalv1, silentLog } from '@kpng/api'
import { type Backend, type ChangeSet, type ChangeSetSource, runBackend, SourceStatus } from '@kpng/client'
import { type FrontendBackend, FrontendTable } from '@kpng/dataplane'
import { reachableAddresses } from '@kpng/linux'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { recordingLog, until } from '../core/testing/until.js'
import { type NodeAgent, type NodeAgentOptions, startNodeAgent } from './agent.js'
import { resolveSettings } from './config/index.js'
import { endpointAt, serviceWith, syncReport, TestView } from './testing/views.js'

let stop: AbortController
let posted: string[]
beforeEach(() => {
  stop = new AbortController()
  posted = []
})
afterEach(() => stop.abort())

const freePort = async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { port, free: () => new Promise((resolve) => server.close(resolve)) }
}

const start = (options: Partial<NodeAgentOptions> & { file?: object } = {}) =>
  startNodeAgent({
    resolved: resolveSettings({
      file: {
        healthzBindAddress: '127.0.0.1:0',
        metricsBindAddress: '127.0.0.1:0',
        nodePortAddresses: ['127.0.0.1/32', '::1/128'],
        ...options.file,
      },
    }),
    nodeName: 'worker-1',
    version: '1.2.3',
    mode: 'nftables',
    log: silentLog,
    signal: stop.signal,
    post: async (_, body) => {
      posted.push((body as { reason: string }).reason)
    },
    ...options,
  })

const page = async (port: number | undefined, path: string) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return { status: response.status, text: await response.text() }
}

test('a backend that runs beside it is seen on every page', async () => {
  const agent = await start()
  const check = await freePort()
  await check.free()
  const { service, endpoints } = serviceWith(
    { name: 'web', externalTrafficToLocal: true, healthCheckNodePort: check.port },
    [endpointAt('10.0.0.1', { local: true })],
  )
  const changeSet: ChangeSet = {
    reset: true,
    services: new Map([['default/web', { service, endpoints }]]),
    node: create(globalv1.NodeSchema, { name: 'worker-1' }),
    serviceCidrs: new Map(),
    triggers: [{ service: 'default/web', unixMs: Date.now() + 1 }],
  }
  const changeSets: ChangeSetSource = async function* (_, signal) {
    yield changeSet
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  }
  let fail = true
  const running = runBackend(
    {
      setup: async () => {},
      sync: async () => {
        if (fail) throw new Error('the kernel is busy')
      },
      cleanup: async () => {},
      close: async () => {},
    },
    {
      changeSets,
      nodeName: 'worker-1',
      log: silentLog,
      signal: stop.signal,
      retryMs: 20,
      onSync: (report) => agent.observer.onSync(report),
    },
  )
  const metrics = async () => (await page(agent.ports.metrics, '/metrics')).text
  await until('a sync failed', async () => /nftables_sync_failures_total{ip_family="IPv4"} [1-9]/.test(await metrics()))
  expect(await metrics()).toContain('kubeproxy_sync_proxy_rules_service_changes_pending 1')
  fail = false
  await until('the service is synced', async () => (await metrics()).includes('_rules_service_changes_total 1'))
  await until('its health check is open', () =>
    page(check.port, '/')
      .then(({ status }) => status === 200)
      .catch(() => false),
  )
  expect(await metrics()).toContain('kubeproxy_network_programming_duration_seconds_count{ip_family="IPv4"} 1')
  expect(await page(agent.ports.healthz, '/healthz')).toMatchObject({ status: 200 })
  expect(await metrics()).toContain('kubeproxy_proxy_healthz_total{code="200"} 1')
  expect(await page(agent.ports.metrics, '/proxyMode')).toEqual({ status: 200, text: 'nftables' })
  expect(await metrics()).toContain('nodejs_eventloop_lag_seconds')
  expect(posted).toEqual(['Starting'])
  stop.abort()
  await running
  await agent.close()
  await expect(page(check.port, '/')).rejects.toThrow()
  await expect(page(agent.ports.metrics, '/metrics')).rejects.toThrow()
})

describe('the observer', () => {
  const view = new TestView()
  const report = (agent: NodeAgent, node: globalv1.Node | undefined, error?: unknown) => {
    view.node = node
    agent.observer.onSync(syncReport(view, view.change({}, { node: true }), error ? { error } : {}))
  }
  const node = (deleting: boolean) => create(globalv1.NodeSchema, { name: 'worker-1', deleting })

  test('a node that is being deleted, or was, is not eligible; one that nobody knows is', async () => {
    const agent = await start()
    const eligible = (given: globalv1.Node | undefined) => {
      report(agent, given)
      return agent.health.nodeEligible
    }
    expect([undefined, node(false), node(true), node(false), undefined].map(eligible)).toEqual([
      true,
      true,
      false,
      true,
      false,
    ])
  })

  test('without a Node object it says what is used instead, once, and when the Node is there', async () => {
    const { lines, log } = recordingLog()
    const agent = await start({ log })
    lines.length = 0
    for (const given of [undefined, undefined, node(false)]) report(agent, given)
    const own = reachableAddresses()
    expect(lines.filter((line) => /Node/.test(line))).toEqual([
      expect.stringMatching(/^W There is no Node object of this name: the addresses of this machine are used instead/),
      expect.stringMatching(/^I The Node is there now/),
    ])
    expect(lines.join()).toContain(`"addresses":${JSON.stringify(own)}`)
  })

  test('a sync that hangs or fails makes it unhealthy, one that succeeds healthy', async () => {
    const agent = await start({ file: { syncPeriodMs: 20, minSyncPeriodMs: 0 } })
    agent.observer.onQueued(view.change({}))
    expect(agent.health.healthy).toBe(true)
    await until('it is late', () => !agent.health.healthy)
    report(agent, undefined, new Error('no'))
    expect(agent.health.healthy).toBe(false)
    report(agent, undefined)
    expect(agent.health.healthy).toBe(true)
    report(agent, undefined, new Error('no'))
    await until('it is late', () => !agent.health.healthy)
  })
})

describe('a stale source', () => {
  /** Lost longer ago than anybody tolerates: what counts is the time since, and the clock of this process has only begun. */
  const lostLongAgo = () => {
    const source = new SourceStatus()
    const watch = source.watch('services')
    watch.connected()
    watch.lost()
    Object.defineProperty(watch, 'changedAtMs', { value: performance.now() - 600_000 })
    return source
  }
  const view = new TestView()

  test('is named on every page, and none of them becomes 503', async () => {
    const agent = await start({ readings: { source: lostLongAgo() } })
    agent.observer.onSync(syncReport(view, view.change({}, { full: true })))
    for (const path of ['/healthz', '/livez', '/readyz']) {
      const { status, text } = await page(agent.ports.healthz, path)
      expect([path, status, JSON.parse(text).source]).toEqual([
        path,
        200,
        {
          stale: true,
          reason: expect.stringMatching(/^Not connected since 20.*: services\.$/),
          watches: { services: { connected: false, since: expect.any(String), lastEvent: expect.any(String) } },
        },
      ])
    }
    expect((await page(agent.ports.metrics, '/statusz')).text).toMatch(
      /^Healthy: true\nStale: Not connected since .*: services\.\nSource services: not connected since /m,
    )
    const metrics = (await page(agent.ports.metrics, '/metrics')).text
    expect(metrics).toContain('kpng_source_connected{resource="services"} 0\n')
    expect(metrics).toMatch(/^kpng_source_last_event_timestamp_seconds\{resource="services"\} 1\d+$/m)
    expect(metrics).not.toContain('kpng_state_cache_in_use')
  })

  test('from a state cache: ready with its rules, but the health checks of Services attract nobody', async () => {
    const source = lostLongAgo()
    source.stateCache = { savedAtMs: Date.now() }
    const agent = await start({ readings: { source } })
    const check = await freePort()
    await check.free()
    const web = serviceWith({ name: 'web', externalTrafficToLocal: true, healthCheckNodePort: check.port }, [
      endpointAt('10.0.0.1', { local: true }),
    ])
    agent.observer.onSync(syncReport(view, view.change({ 'default/web': web }, { full: true })))
    const code = () =>
      page(check.port, '/').then(
        ({ status }) => status,
        () => undefined,
      )
    await until('it answers', async () => (await code()) !== undefined)
    expect(await code()).toBe(503)
    expect((await page(agent.ports.healthz, '/readyz')).status).toBe(200)
    expect((await page(agent.ports.metrics, '/metrics')).text).toContain('kpng_state_cache_in_use 1\n')
    source.stateCache.savedAtMs = undefined
    expect(await code()).toBe(200)
    expect((await page(agent.ports.metrics, '/metrics')).text).toContain('kpng_state_cache_in_use 0\n')
  })

  test('that never answered: not ready, and healthy', async () => {
    const source = new SourceStatus()
    source.watch('core')
    const agent = await start({ readings: { source } })
    const codes = ['/healthz', '/livez', '/readyz'].map(async (path) => (await page(agent.ports.healthz, path)).status)
    expect(await Promise.all(codes)).toEqual([200, 200, 503])
  })
})

describe('what this node serves', () => {
  const noLocalEndpoints = async (agent: NodeAgent) =>
    /no_local_endpoints_total\{traffic_policy="internal",ip_family="IPv4"\} (\d)/.exec(
      (await page(agent.ports.metrics, '/metrics')).text,
    )?.[1]
  const view = new TestView()
  const elsewhere = endpointAt('10.0.0.1', { scopes: { cluster: true } })
  const web = serviceWith({ name: 'web', internalTrafficToLocal: true }, [elsewhere])
  const changes = view.change({ 'default/web': web }, { full: true })
  const backend: Backend = {
    setup: async () => {},
    sync: async () => {},
    cleanup: async () => {},
    close: async () => {},
  }

  test('is worked out by the agent for a backend that has no table', async () => {
    const agent = await start({ backend })
    agent.observer.onSync(syncReport(view, changes))
    expect(await noLocalEndpoints(agent)).toBe('1')
  })

  test('is read from the table of a backend that shows one', async () => {
    const frontends = new FrontendTable()
    const agent = await start({ backend: { ...backend, frontends } as FrontendBackend })
    agent.observer.onSync(syncReport(view, changes))
    expect(await noLocalEndpoints(agent)).toBe('0')
    frontends.apply(view, changes, { families: ['IPv4'], addresses: [] })
    agent.observer.onSync(syncReport(view, changes))
    expect(await noLocalEndpoints(agent)).toBe('1')
  })
})

describe('a port in use', () => {
  test('is an Event, and everything else goes on', async () => {
    const other = await freePort()
    const agent = await start({ file: { healthzBindAddress: `127.0.0.1:${other.port}` } })
    expect(agent.ports.healthz).toBeUndefined()
    expect((await page(agent.ports.metrics, '/healthz')).status).toBe(200)
    expect(posted.sort()).toEqual(['FailedToStartProxierHealthcheck', 'Starting'])
    await other.free()
  })

  test('with bindAddressHardFail ends it, and opens nothing', async () => {
    const other = await freePort()
    const healthz = await freePort()
    await healthz.free()
    const file = {
      healthzBindAddress: `127.0.0.1:${healthz.port}`,
      metricsBindAddress: `127.0.0.1:${other.port}`,
      bindAddressHardFail: true,
    }
    await expect(start({ file })).rejects.toMatchObject({ message: expect.stringContaining('The metrics server') })
    await expect(page(healthz.port, '/healthz')).rejects.toThrow()
    expect(posted).toEqual(['FailedToStartMetricServer'])
    await other.free()
  })
})
