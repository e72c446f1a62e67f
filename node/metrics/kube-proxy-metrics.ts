import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { programmingBuckets, syncBuckets } from './buckets.js'

/** How a data plane is programmed, as far as kube-proxy's metrics tell them apart. */
export type MetricsMode = 'nftables' | 'iptables' | 'other'

export type KubeProxyMetrics = ReturnType<typeof kubeProxyMetrics>

/**
 * kube-proxy's metrics with its names, types, labels, buckets and help texts (1.34 and later: most have an `ip_family`), so that its
 * dashboards and alerts work unchanged.
 */
export function kubeProxyMetrics(registry: Registry) {
  const options = <Labels extends readonly string[]>(name: string, help: string, ...labelNames: Labels) => ({
    name: `kubeproxy_${name}`,
    help,
    labelNames,
    registers: [registry],
  })
  const family = ['ip_family'] as const
  const duration = (name: string, help: string, buckets = syncBuckets) =>
    new Histogram({ ...options(name, help, ...family), buckets })
  return {
    syncDuration: duration('sync_proxy_rules_duration_seconds', 'SyncProxyRules latency in seconds'),
    syncFullDuration: duration(
      'sync_full_proxy_rules_duration_seconds',
      'SyncProxyRules latency in seconds for full resyncs',
    ),
    syncPartialDuration: duration(
      'sync_partial_proxy_rules_duration_seconds',
      'SyncProxyRules latency in seconds for partial resyncs',
    ),
    lastSynced: new Gauge(
      options(
        'sync_proxy_rules_last_timestamp_seconds',
        'The last time proxy rules were successfully synced',
        ...family,
      ),
    ),
    lastQueued: new Gauge(
      options(
        'sync_proxy_rules_last_queued_timestamp_seconds',
        'The last time a sync of proxy rules was queued',
        ...family,
      ),
    ),
    networkProgramming: duration(
      'network_programming_duration_seconds',
      'In Cluster Network Programming Latency in seconds',
      programmingBuckets,
    ),
    endpointChangesPending: new Gauge(
      options('sync_proxy_rules_endpoint_changes_pending', 'Pending proxy rules Endpoint changes'),
    ),
    endpointChanges: new Counter(
      options('sync_proxy_rules_endpoint_changes_total', 'Cumulative proxy rules Endpoint changes'),
    ),
    serviceChangesPending: new Gauge(
      options('sync_proxy_rules_service_changes_pending', 'Pending proxy rules Service changes'),
    ),
    serviceChanges: new Counter(
      options('sync_proxy_rules_service_changes_total', 'Cumulative proxy rules Service changes'),
    ),
    // A gauge in spite of its name, in kube-proxy too.
    noLocalEndpoints: new Gauge(
      options(
        'sync_proxy_rules_no_local_endpoints_total',
        'Number of services with a Local traffic policy and no endpoints',
        'traffic_policy',
        'ip_family',
      ),
    ),
    healthz: new Counter(options('proxy_healthz_total', 'Cumulative proxy healthz HTTP status', 'code')),
    livez: new Counter(options('proxy_livez_total', 'Cumulative proxy livez HTTP status', 'code')),
    conntrackDuration: duration(
      'conntrack_reconciler_sync_duration_seconds',
      'ReconcileConntrackFlowsLatency latency in seconds',
    ),
    conntrackDeleted: new Counter(
      options(
        'conntrack_reconciler_deleted_entries_total',
        'Cumulative conntrack flows deleted by conntrack reconciler',
        ...family,
      ),
    ),
  }
}

/** The failures that kube-proxy counts in a mode, and only in that mode. */
export function failureMetrics(registry: Registry, mode: MetricsMode) {
  const counter = (name: string, help: string) =>
    new Counter({ name: `kubeproxy_${name}`, help, labelNames: ['ip_family'] as const, registers: [registry] })
  if (mode === 'nftables') {
    return {
      sync: counter('sync_proxy_rules_nftables_sync_failures_total', 'Cumulative proxy nftables sync failures'),
      cleanup: counter(
        'sync_proxy_rules_nftables_cleanup_failures_total',
        'Cumulative proxy nftables cleanup failures',
      ),
    }
  }
  if (mode === 'iptables') {
    return {
      sync: counter('sync_proxy_rules_iptables_restore_failures_total', 'Cumulative proxy iptables restore failures'),
    }
  }
  return {}
}
