import type { ServicePortTraffic } from '@kpng/client'
import { Counter, Gauge, type Registry } from 'prom-client'

const labelNames = ['namespace', 'service', 'port'] as const

type Sample = readonly [count: number, extra?: { readonly [label: string]: string }]

/**
 * Metrics by service port of a backend that carries traffic itself. They are read when somebody scrapes: nothing is kept twice, and
 * what is gone is not shown.
 */
export function registerTraffic(registry: Registry, traffic: ReadonlyMap<string, ServicePortTraffic>): void {
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
