import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

// kube-proxy's buckets. Dashboards compute quantiles from them, so they are the same to the last one.

const exponential = (start: number, factor: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => start * factor ** index)

const linear = (start: number, width: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => start + width * index)

/** 1 ms to 16 s. */
const syncBuckets = exponential(0.001, 2, 15)

/** Up to 5 minutes. The bucket of 0 is there in kube-proxy too. */
const programmingBuckets = [
  0,
  ...linear(0.25, 0.25, 2),
  ...linear(1, 1, 59),
  ...linear(60, 5, 12),
  ...linear(120, 30, 7),
]

/** How a data plane is programmed, as far as kube-proxy's metrics tell them apart. */
export type MetricsMode = 'nftables' | 'iptables' | 'other'

export type KubeProxyMetrics = ReturnType<typeof kubeProxyMetrics>

/**
 * kube-proxy's metrics with its names, types, labels, buckets and help texts (1.34 and later: most have an `ip_family`), so that its
 * dashboards and alerts work unchanged.
 */
export function kubeProxyMetrics(registry: Registry) {
  const options = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) => ({
    name: `kubeproxy_${name}`,
    help,
    labelNames,
    registers: [registry],
  })
  const counter = <Label extends string>(name: string, help: string, ...labels: readonly Label[]) =>
    new Counter(options(name, help, labels))
  const gauge = <Label extends string>(name: string, help: string, ...labels: readonly Label[]) =>
    new Gauge(options(name, help, labels))
  const duration = (name: string, help: string, buckets = syncBuckets) =>
    new Histogram({ ...options(name, help, ['ip_family']), buckets })
  const latency = 'SyncProxyRules latency in seconds'
  return {
    syncDuration: duration('sync_proxy_rules_duration_seconds', latency),
    syncFullDuration: duration('sync_full_proxy_rules_duration_seconds', `${latency} for full resyncs`),
    syncPartialDuration: duration('sync_partial_proxy_rules_duration_seconds', `${latency} for partial resyncs`),
    lastSynced: gauge(
      'sync_proxy_rules_last_timestamp_seconds',
      'The last time proxy rules were successfully synced',
      'ip_family',
    ),
    lastQueued: gauge(
      'sync_proxy_rules_last_queued_timestamp_seconds',
      'The last time a sync of proxy rules was queued',
      'ip_family',
    ),
    networkProgramming: duration(
      'network_programming_duration_seconds',
      'In Cluster Network Programming Latency in seconds',
      programmingBuckets,
    ),
    endpointChangesPending: gauge('sync_proxy_rules_endpoint_changes_pending', 'Pending proxy rules Endpoint changes'),
    endpointChanges: counter('sync_proxy_rules_endpoint_changes_total', 'Cumulative proxy rules Endpoint changes'),
    serviceChangesPending: gauge('sync_proxy_rules_service_changes_pending', 'Pending proxy rules Service changes'),
    serviceChanges: counter('sync_proxy_rules_service_changes_total', 'Cumulative proxy rules Service changes'),
    // A gauge in spite of its name, in kube-proxy too.
    noLocalEndpoints: gauge(
      'sync_proxy_rules_no_local_endpoints_total',
      'Number of services with a Local traffic policy and no endpoints',
      'traffic_policy',
      'ip_family',
    ),
    healthz: counter('proxy_healthz_total', 'Cumulative proxy healthz HTTP status', 'code'),
    livez: counter('proxy_livez_total', 'Cumulative proxy livez HTTP status', 'code'),
    conntrackDuration: duration(
      'conntrack_reconciler_sync_duration_seconds',
      'ReconcileConntrackFlowsLatency latency in seconds',
    ),
    conntrackDeleted: counter(
      'conntrack_reconciler_deleted_entries_total',
      'Cumulative conntrack flows deleted by conntrack reconciler',
      'ip_family',
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
      partialSync: counter(
        'sync_proxy_rules_iptables_partial_restore_failures_total',
        'Cumulative proxy iptables partial restore failures',
      ),
    }
  }
  return {}
}
