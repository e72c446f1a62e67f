import type { Observations, PacketCounts, ServicePortConnections, ServicePortTraffic } from '@kpng/client'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { ProxyMetrics } from './proxy-metrics.js'
import { readGauge } from './read-at-scrape.js'

const labelNames = ['namespace', 'service', 'port'] as const

/** Counts what a backend reports, and shows what it counts. */
export function countObservations(observations: Observations, metrics: ProxyMetrics): void {
  const { connections, packets, traffic, failures } = observations
  observations.listener = {
    ...observations.listener,
    staleFlows: (family, durationMs, deleted) => metrics.recordConntrack(family, durationMs, deleted),
    cleanupFailed: (families) => metrics.recordCleanupFailure(families),
  }
  if (connections) registerConnections(metrics.registry, connections)
  if (packets) registerPackets(metrics.registry, packets)
  if (traffic) registerTraffic(metrics.registry, traffic)
  if (failures) {
    const help = 'Addresses of services that could not be opened; the log says which, and why'
    readGauge(metrics.registry, 'kpng_userspace_portals_failed', help, () => failures().size)
  }
}

/** A metric by service port, read from the kernel when somebody scrapes. */
function registerConnections(registry: Registry, read: () => Promise<readonly ServicePortConnections[]>): void {
  new Counter({
    name: 'kpng_nft_connections_total',
    help: 'New connections and UDP flows to a service port, also those that found no endpoint',
    labelNames,
    registers: [registry],
    async collect() {
      const all = await read()
      this.reset()
      for (const { connections, ...labels } of all) this.inc(labels, connections)
    },
  })
}

/** As kube-proxy's iptables mode has them. */
function registerPackets(registry: Registry, read: () => Promise<PacketCounts>): void {
  const define = (name: string, help: string, count: (counts: PacketCounts) => number) =>
    new Counter({
      ...{ name: `kubeproxy_iptables_${name}_packets_total`, help, registers: [registry] },
      async collect() {
        const counts = await read()
        this.reset()
        this.inc(count(counts))
      },
    })
  define(
    'ct_state_invalid_dropped',
    'packets dropped by iptables to work around conntrack problems',
    ({ invalidDropped }) => invalidDropped,
  )
  define(
    'localhost_nodeports_accepted',
    'Number of packets accepted on nodeports of loopback interface',
    ({ localhostNodePortsAccepted }) => localhostNodePortsAccepted,
  )
}

type Sample = readonly [count: number, extra?: { readonly [label: string]: string }]

/**
 * Metrics by service port of a backend that carries traffic itself. They are read when somebody scrapes: nothing is kept twice, and
 * what is gone is not shown.
 */
function registerTraffic(registry: Registry, traffic: ReadonlyMap<string, ServicePortTraffic>): void {
  const define = (
    Metric: typeof Counter<string> | typeof Gauge<string>,
    name: string,
    help: string,
    samples: (counts: ServicePortTraffic) => readonly Sample[],
    ...extraLabels: readonly string[]
  ) =>
    new Metric({
      name: `kpng_userspace_${name}`,
      help,
      labelNames: [...labelNames, ...extraLabels],
      registers: [registry],
      collect() {
        this.reset()
        for (const [key, counts] of traffic) {
          const labels = labelsOf(key)
          for (const [count, extra] of samples(counts)) this.inc({ ...labels, ...extra }, count)
        }
      },
    })
  define(Counter, 'connections_total', 'Connections and UDP sessions proxied to an endpoint', ({ connections }) => [
    [connections],
  ])
  define(Gauge, 'connections_active', 'Connections and UDP sessions that are open', ({ active }) => [[active]])
  define(
    Counter,
    'bytes_total',
    'Bytes carried, by direction',
    ({ bytesToEndpoint, bytesToClient }) => [
      [bytesToEndpoint, { direction: 'to_endpoint' }],
      [bytesToClient, { direction: 'to_client' }],
    ],
    'direction',
  )
  define(
    Counter,
    'failures_total',
    'Attempts that failed: dial (one endpoint), no_endpoint (none could be reached), crowded_out (UDP clients that made room), refused (turned away)',
    ({ dialFailures, failures, crowdedOut, refused }) => [
      [dialFailures, { reason: 'dial' }],
      [failures, { reason: 'no_endpoint' }],
      [crowdedOut, { reason: 'crowded_out' }],
      [refused, { reason: 'refused' }],
    ],
    'reason',
  )
}

/** A port without a name has no colon. */
function labelsOf(key: string): { namespace: string; service: string; port: string } {
  const [, namespace = '', service = key, port = ''] = /^([^/]*)\/([^:]*)(?::(.*))?$/.exec(key) ?? []
  return { namespace, service, port }
}
