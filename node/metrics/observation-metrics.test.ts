import type { Observations } from '@kpng/client'
import { expect, test } from 'vitest'
import { countObservations } from './observation-metrics.js'
import { ProxyMetrics } from './proxy-metrics.js'

test('what a backend tells is counted by family', async () => {
  const metrics = new ProxyMetrics({ mode: 'nftables', version: '1.2.3', processMetrics: false })
  const connectionEnded = () => {}
  const observations: Observations = { listener: { connectionEnded } }
  countObservations(observations, metrics)
  const { listener } = observations
  listener.staleFlows?.('IPv4', 8, 3)
  listener.staleFlows?.('IPv4', 4, 1)
  listener.cleanupFailed?.(['IPv6'])
  // Somebody else listens too.
  expect(listener.connectionEnded).toBe(connectionEnded)
  const text = await metrics.registry.metrics()
  expect(text).toContain('kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv4"} 4')
  expect(text).toContain('kubeproxy_conntrack_reconciler_sync_duration_seconds_count{ip_family="IPv4"} 2')
  expect(text).toContain('kubeproxy_conntrack_reconciler_deleted_entries_total{ip_family="IPv6"} 0')
  expect(text).toContain('kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv6"} 1')
  expect(text).toContain('kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total{ip_family="IPv4"} 0')
})

test('connections are asked for at each scrape, and what is gone is not shown', async () => {
  const metrics = new ProxyMetrics({ mode: 'nftables', version: '1.2.3', processMetrics: false })
  let counts = [{ namespace: 'default', service: 'web', port: 'http', connections: 5 }]
  countObservations({ connections: async () => counts, listener: {} }, metrics)
  const line = 'kpng_nft_connections_total{namespace="default",service="web",port="http"} 5'
  expect(await metrics.registry.metrics()).toContain(line)
  expect(await metrics.registry.metrics()).toContain(line)
  counts = []
  expect(await metrics.registry.metrics()).not.toContain('kpng_nft_connections_total{')
})

test('portals that are not open are counted at each scrape', async () => {
  const metrics = new ProxyMetrics({ mode: 'other', version: '1.2.3', processMetrics: false })
  const failures = new Map([['default/web:http|10.96.0.1:80/tcp', 'in use']])
  countObservations({ failures: () => failures, listener: {} }, metrics)
  expect(await metrics.registry.metrics()).toContain('kpng_userspace_portals_failed 1')
  failures.clear()
  expect(await metrics.registry.metrics()).toContain('kpng_userspace_portals_failed 0')
})

test('metrics that do not apply to a backend are not exported', async () => {
  const metrics = new ProxyMetrics({ mode: 'other', version: '1.2.3', processMetrics: false })
  countObservations({ listener: {} }, metrics)
  expect(await metrics.registry.metrics()).not.toMatch(/kpng_(?:nft|userspace)_/)
})
