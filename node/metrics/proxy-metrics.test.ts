import { KpngError } from '@kpng/api'
import type { Changes } from '@kpng/client'
import { beforeEach, describe, expect, test } from 'vitest'
import { endpointAt, serviceWith, syncReport, TestView } from '../testing/views.js'
import { countObservations } from './observation-metrics.js'
import { ProxyMetrics, type ProxyMetricsOptions } from './proxy-metrics.js'

let now: number
let view: TestView
let metrics: ProxyMetrics
const make = (options: Partial<ProxyMetricsOptions> = {}) =>
  new ProxyMetrics({ mode: 'nftables', version: '1.2.3', now: () => now, processMetrics: false, ...options })
beforeEach(() => {
  now = 1_000_000
  view = new TestView()
  metrics = make()
})

const text = () => metrics.registry.metrics()
/** The value of a sample, written as Prometheus writes it. */
const value = async (sample: string): Promise<number | undefined> => {
  const line = (await text()).split('\n').find((candidate) => candidate.startsWith(`${sample} `))
  return line === undefined ? undefined : Number(line.slice(sample.length + 1))
}
const sync = (changes: Changes, more: { durationMs?: number; error?: unknown } = {}) =>
  metrics.recordSync(syncReport(view, changes, more))
const web = (...endpoints: Parameters<typeof serviceWith>[1] & object) => serviceWith({ name: 'web' }, endpoints)

const perFamily = (name: string) => [`${name}{ip_family="IPv4"}`, `${name}{ip_family="IPv6"}`]

test('every metric of kube-proxy is there with its type and labels', async () => {
  const iptables = make({ mode: 'iptables' })
  const described = Object.fromEntries(
    [...metrics.registry.getMetricsAsArray(), ...iptables.registry.getMetricsAsArray()].map((metric) => {
      const { name, type, labelNames } = metric as unknown as { name: string; type: string; labelNames: string[] }
      return [name, `${type} ${[...(labelNames ?? [])].join(',')}`.trim()]
    }),
  )
  expect(described).toEqual({
    kubeproxy_sync_proxy_rules_duration_seconds: 'histogram ip_family',
    kubeproxy_sync_full_proxy_rules_duration_seconds: 'histogram ip_family',
    kubeproxy_sync_partial_proxy_rules_duration_seconds: 'histogram ip_family',
    kubeproxy_sync_proxy_rules_last_timestamp_seconds: 'gauge ip_family',
    kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds: 'gauge ip_family',
    kubeproxy_network_programming_duration_seconds: 'histogram ip_family',
    kubeproxy_sync_proxy_rules_endpoint_changes_pending: 'gauge',
    kubeproxy_sync_proxy_rules_endpoint_changes_total: 'counter',
    kubeproxy_sync_proxy_rules_service_changes_pending: 'gauge',
    kubeproxy_sync_proxy_rules_service_changes_total: 'counter',
    kubeproxy_sync_proxy_rules_no_local_endpoints_total: 'gauge traffic_policy,ip_family',
    kubeproxy_sync_proxy_rules_nftables_sync_failures_total: 'counter ip_family',
    kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total: 'counter ip_family',
    kubeproxy_sync_proxy_rules_iptables_restore_failures_total: 'counter ip_family',
    kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total: 'counter ip_family',
    kubeproxy_proxy_healthz_total: 'counter code',
    kubeproxy_proxy_livez_total: 'counter code',
    kubeproxy_conntrack_reconciler_sync_duration_seconds: 'histogram ip_family',
    kubeproxy_conntrack_reconciler_deleted_entries_total: 'counter ip_family',
    kpng_build_info: 'gauge version,node_version',
  })
})

test('buckets are those of kube-proxy', async () => {
  sync(view.change({}, { full: true }))
  sync(view.change({}, { triggers: [{ service: 'a/b', unixMs: now + 1 }] }))
  const bucketsOf = async (name: string) =>
    [...(await text()).matchAll(new RegExp(`^${name}_bucket{le="([^"]+)",ip_family="IPv4"}`, 'gm'))].map(([, le]) => le)
  expect(await bucketsOf('kubeproxy_sync_proxy_rules_duration_seconds')).toEqual(
    '0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384 +Inf'.split(' '),
  )
  const programming = await bucketsOf('kubeproxy_network_programming_duration_seconds')
  expect(programming).toHaveLength(82)
  expect(programming.slice(0, 5)).toEqual(['0', '0.25', '0.5', '1', '2'])
  expect(programming.slice(-3)).toEqual(['270', '300', '+Inf'])
})

describe('a sync', () => {
  test('is counted in its duration, and as full or partial', async () => {
    sync(view.change({}, { full: true }), { durationMs: 30 })
    sync(view.change({}), { durationMs: 1.5 })
    sync(view.change({}), { durationMs: 2.5 })
    for (const [name, count, sum] of [
      ['sync_proxy_rules', 3, 0.034],
      ['sync_full_proxy_rules', 1, 0.03],
      ['sync_partial_proxy_rules', 2, 0.004],
    ] as const) {
      for (const sample of perFamily(`kubeproxy_${name}_duration_seconds_count`))
        expect(await value(sample)).toBe(count)
      for (const sample of perFamily(`kubeproxy_${name}_duration_seconds_sum`))
        expect(await value(sample)).toBeCloseTo(sum)
    }
  })

  test('that succeeds sets its time; one that fails counts as a failure', async () => {
    sync(view.change({}), { durationMs: 500 })
    now = 2_000_000
    sync(view.change({}), { durationMs: 500, error: new KpngError('refused', 'no') })
    for (const sample of perFamily('kubeproxy_sync_proxy_rules_last_timestamp_seconds')) {
      expect(await value(sample)).toBe(1000)
    }
    for (const sample of perFamily('kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds')) {
      expect(await value(sample)).toBe(1999.5)
    }
    for (const sample of perFamily('kubeproxy_sync_proxy_rules_nftables_sync_failures_total')) {
      expect(await value(sample)).toBe(1)
    }
  })

  test('in mode iptables fails in another metric', async () => {
    metrics = make({ mode: 'iptables' })
    sync(view.change({}), { error: new Error('no') })
    expect(await value('kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"}')).toBe(1)
    const partial = 'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total{ip_family="IPv4"}'
    expect(await value(partial)).toBe(1)
    sync(view.change({}, { full: true }), { error: new Error('no') })
    expect(await value(partial)).toBe(1)
    expect(await text()).not.toContain('nftables')
  })

  test('of one family says nothing of the other', async () => {
    metrics = make({ families: ['IPv6'] })
    sync(view.change({}))
    expect(await text()).not.toContain('ip_family="IPv4"')
    expect(await value('kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv6"}')).toBe(1)
  })
})

describe('changes', () => {
  const counts = async () => {
    const of = (what: string) => value(`kubeproxy_sync_proxy_rules_${what}`)
    return {
      services: [await of('service_changes_total'), await of('service_changes_pending')],
      endpoints: [await of('endpoint_changes_total'), await of('endpoint_changes_pending')],
    }
  }

  test('wait until a sync succeeds, and are counted once', async () => {
    const added = view.change({ 'default/web': web(endpointAt('10.0.0.1')), 'default/none': web() })
    metrics.recordQueued(added)
    expect(await counts()).toEqual({ services: [0, 2], endpoints: [0, 1] })
    sync(added, { error: new Error('no') })
    expect(await counts()).toEqual({ services: [0, 2], endpoints: [0, 1] })
    sync(added)
    expect(await counts()).toEqual({ services: [2, 0], endpoints: [1, 0] })
  })

  test('of endpoints alone, of the service alone, and of both', async () => {
    const first = web(endpointAt('10.0.0.1'))
    sync(view.change({ 'default/web': first }))
    sync(view.change({ 'default/web': { service: first.service, endpoints: [...first.endpoints] } }))
    expect(await counts()).toEqual({ services: [1, 0], endpoints: [1, 0] })
    sync(view.change({ 'default/web': { service: first.service, endpoints: web(endpointAt('10.0.0.2')).endpoints } }))
    expect(await counts()).toEqual({ services: [1, 0], endpoints: [2, 0] })
    sync(view.change({ 'default/web': { service: first.service, endpoints: [] } }))
    expect(await counts()).toEqual({ services: [1, 0], endpoints: [3, 0] })
    sync(view.change({ 'default/web': { service: web().service, endpoints: [] } }))
    expect(await counts()).toEqual({ services: [2, 0], endpoints: [3, 0] })
    sync(view.change({ 'default/web': undefined }))
    expect(await counts()).toEqual({ services: [3, 0], endpoints: [3, 0] })
  })

  test('that are queued have a time', async () => {
    now = 1_234_500
    metrics.recordQueued(view.change({}))
    expect(await value('kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"}')).toBe(1234.5)
  })
})

describe('the programming latency', () => {
  const name = 'kubeproxy_network_programming_duration_seconds'

  test('goes from the trigger to the sync, for the families of the endpoints', async () => {
    const triggers = [{ service: 'default/web', unixMs: now + 1000 }]
    now += 3000
    sync(view.change({ 'default/web': web(endpointAt('fd00::1')) }, { triggers }))
    expect(await value(`${name}_sum{ip_family="IPv6"}`)).toBe(2)
    expect(await value(`${name}_count{ip_family="IPv4"}`)).toBeUndefined()
  })

  test('leaves out what began before us, and a sync that failed', async () => {
    sync(view.change({}, { triggers: [{ service: 'default/web', unixMs: now }] }))
    sync(view.change({}, { triggers: [{ service: 'default/web', unixMs: now + 1 }] }), { error: new Error('no') })
    expect(await text()).not.toContain(`${name}_count`)
  })
})

test('health checks, cleanups and stale flows are counted', async () => {
  metrics.recordHealth('healthz', 200)
  metrics.recordHealth('healthz', 503)
  metrics.recordHealth('livez', 200)
  metrics.recordCleanupFailure(['IPv6'])
  metrics.recordConntrack('IPv4', 8, 3)
  expect(await value('kubeproxy_proxy_healthz_total{code="503"}')).toBe(1)
  expect(await value('kubeproxy_proxy_livez_total{code="200"}')).toBe(1)
  expect(await value('kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv4"}')).toBe(0)
  expect(await value('kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv6"}')).toBe(1)
  expect(await value('kubeproxy_conntrack_reconciler_sync_duration_seconds_sum{ip_family="IPv4"}')).toBe(0.008)
  expect(await value('kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"}')).toBe(3)
})

test('the numbers of others are read at each scrape', async () => {
  let count = 1
  const traffic = new Map()
  const read = () => count++
  metrics = make({
    readings: { apiEvents: read, nodeLocalEvents: () => 7, skippedObjects: () => 8, storeRevision: () => 9 },
  })
  countObservations({ traffic, listener: {} }, metrics)
  expect(await value('kpng_k8s_api_events_total')).toBe(1)
  expect(await value('kpng_k8s_api_events_total')).toBe(2)
  expect(await value('kpng_node_local_events_total')).toBe(7)
  expect(await value('kpng_skipped_objects_total')).toBe(8)
  expect(await value('kpng_store_revision')).toBe(9)
  const labels = 'namespace="default",service="web",port="http"'
  traffic.set('default/web:http', {
    connections: 1,
    active: 2,
    bytesToEndpoint: 3,
    bytesToClient: 4,
    dialFailures: 5,
    failures: 6,
    crowdedOut: 8,
    refused: 7,
  })
  expect(await value(`kpng_userspace_connections_total{${labels}}`)).toBe(1)
  expect(await value(`kpng_userspace_connections_active{${labels}}`)).toBe(2)
  expect(await value(`kpng_userspace_bytes_total{${labels},direction="to_endpoint"}`)).toBe(3)
  expect(await value(`kpng_userspace_bytes_total{${labels},direction="to_client"}`)).toBe(4)
  expect(await value(`kpng_userspace_failures_total{${labels},reason="dial"}`)).toBe(5)
  expect(await value(`kpng_userspace_failures_total{${labels},reason="no_endpoint"}`)).toBe(6)
  expect(await value(`kpng_userspace_failures_total{${labels},reason="refused"}`)).toBe(7)
  expect(await value(`kpng_userspace_failures_total{${labels},reason="crowded_out"}`)).toBe(8)
  traffic.set('default/plain', { ...traffic.get('default/web:http'), connections: 8 })
  expect(await value('kpng_userspace_connections_total{namespace="default",service="plain",port=""}')).toBe(8)
  traffic.clear()
  expect(await value(`kpng_userspace_connections_total{${labels}}`)).toBeUndefined()
})
