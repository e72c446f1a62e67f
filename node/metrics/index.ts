export type { MetricsMode } from './kube-proxy-metrics.js'
export type { Readings } from './own-metrics.js'
export { ProxyMetrics, type ProxyMetricsOptions } from './proxy-metrics.js'
export type { ServicePortCounters, ServicePortCounts } from './userspace-metrics.js'
