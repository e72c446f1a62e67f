import type { ConnectionsAnswer } from '@kpng/api'
import type { Backend } from '@kpng/client'

/** How many open connections an answer lists. */
const listed = 500

const protocols = { tcp: 'TCP', udp: 'UDP' } as const

/** What the data plane carries now, as far as it can say. */
export async function connectionsOf(backend: Backend | undefined, mode: string): Promise<ConnectionsAnswer> {
  const { open, traffic, connections } = backend?.observations ?? {}
  if (open) {
    const { total, connections: newest } = await open(listed)
    return {
      total,
      connections: newest.map(({ protocol, bytesToEndpoint, bytesToClient, sinceMs, ...where }) => ({
        protocol: protocols[protocol],
        ...where,
        bytesFromClient: bytesToEndpoint,
        bytesToClient,
        since: new Date(sinceMs).toISOString(),
      })),
      ...(traffic ? { counters: trafficByService(traffic) } : {}),
    }
  }
  const name = backend?.features?.().name ?? mode
  const why = `With ${name}, connections do not pass through kpng: it cannot list them.`
  if (!connections) return { total: 0, why: `${why}${howToCount(name)}` }
  const counted = new Map<string, number>()
  for (const { namespace, service, connections: count } of await connections()) {
    const path = `${namespace}/${service}`
    counted.set(path, (counted.get(path) ?? 0) + count)
  }
  const counters = [...counted].map(([service, count]) => ({ service, connections: count }))
  return { total: 0, why: `${why} It counts new connections per Service.`, counters: mostFirst(counters) }
}

const howToCount = (backend: string): string =>
  backend === 'nftables' ? ' Start it with --service-counters to count new connections per Service.' : ''

type Counter = NonNullable<ConnectionsAnswer['counters']>[number]

const mostFirst = (counters: Counter[]): Counter[] => counters.sort((a, b) => b.connections - a.connections)

function trafficByService(traffic: NonNullable<NonNullable<Backend['observations']>['traffic']>): Counter[] {
  const sums = new Map<string, { connections: number; bytes: number }>()
  for (const [name, { connections, bytesToEndpoint, bytesToClient }] of traffic) {
    const service = name.split(':')[0] as string
    const sum = sums.get(service) ?? { connections: 0, bytes: 0 }
    sum.connections += connections
    sum.bytes += bytesToEndpoint + bytesToClient
    sums.set(service, sum)
  }
  return mostFirst([...sums].map(([service, sum]) => ({ service, ...sum })))
}

/** How many connections a data plane carries itself; undefined if it carries none. */
export function connectionCounter(backend: Backend | undefined): (() => number) | undefined {
  const traffic = backend?.observations?.traffic
  if (!traffic) return undefined
  return () => {
    let active = 0
    for (const port of traffic.values()) active += port.active
    return active
  }
}
