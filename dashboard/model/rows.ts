import type { LiveService } from '@kpng/api'
import { isVerdict } from './states.js'

/** A Service as the list and the map show it. */
export interface Row {
  /** `namespace/name` */
  readonly key: string
  /** As the agent sent it last. */
  service: LiveService
  /** What a search looks through, in lower case. */
  searchText: string
  /** When a change of it was seen, by `performance.now()`. 0: none since it was read. */
  seenAt: number
}

export function newRow(key: string, sent: LiveService): Row {
  const service = completed(sent)
  return { key, service, searchText: searchTextOf(service), seenAt: 0 }
}

export function updateRow(row: Row, sent: LiveService, seenAt: number): void {
  const { clusterIps, externalIps, ports, type } = row.service
  const service = completed(sent)
  row.service = service
  row.seenAt = seenAt
  const same =
    `${clusterIps}` === `${service.clusterIps}` &&
    `${externalIps}` === `${service.externalIps}` &&
    `${ports}` === `${service.ports}` &&
    type === service.type
  if (!same) row.searchText = searchTextOf(service)
}

/** What another version says and this page does not know is unknown, and not fine. */
const completed = (service: LiveService): LiveService =>
  isVerdict(service.verdict ?? '') ? service : { ...service, verdict: 'unknown', reason: service.reason ?? '' }

/** Names, addresses, and each address with each port. */
function searchTextOf({ namespace, name, type, clusterIps, externalIps, ports }: LiveService): string {
  const addresses = [...clusterIps, ...externalIps]
  const withPorts = addresses.flatMap((ip) => ports.map((port) => addressWithPort(ip, port.split(/[:/]/)[0] ?? '')))
  return [`${namespace}/${name}`, type, ...addresses, ...withPorts, ...ports].join(' ').toLowerCase()
}

export const addressWithPort = (ip: string, port: string | number): string =>
  ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`

/** `10.96.0.10:80, 443`; empty for a Service without a cluster IP. */
export function addressText({ clusterIps: [ip], ports }: LiveService): string {
  if (ip === undefined) return ''
  const numbers = ports.map((port) => port.split(/[:/]/)[0])
  const shown = numbers.length > 3 ? [...numbers.slice(0, 3), '…'] : numbers
  return addressWithPort(ip, shown.join(', '))
}

/** What is special about a Service, in words: `internal Local`, `affinity`. */
export function traits(service: LiveService): string[] {
  const { internalTrafficPolicy, externalTrafficPolicy, type, sessionAffinity, hints, sourceRanges } = service
  const isOpen = type !== 'ClusterIP' || service.externalIps.length > 0
  const words: readonly (string | false)[] = [
    service.clusterIps.length === 0 && 'headless',
    internalTrafficPolicy === 'Local' && 'internal Local',
    isOpen && externalTrafficPolicy === 'Local' && 'Local',
    sessionAffinity && 'affinity',
    type === 'LoadBalancer' && 'load balancer',
    type === 'NodePort' && 'node port',
    type === 'ClusterIP' && service.externalIps.length > 0 && 'external IP',
    service.clusterIps.length > 1 && 'dual stack',
    hints && 'hints',
    sourceRanges && 'source ranges',
  ]
  return words.filter((word) => word !== false)
}
