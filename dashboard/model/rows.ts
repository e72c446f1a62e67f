import type { EndpointReason, LiveService } from '@kpng/api'
import { isState } from './states.js'

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

/** In a few words, why an endpoint is not used. `kpng explain` has the sentences. */
export const reasonWords: Readonly<Record<EndpointReason, string>> = {
  'not-ready': 'not ready',
  terminating: 'terminating',
  'hints-other-node': 'hinted to other nodes',
  'hints-other-zone': 'hinted to another zone',
  'not-local': 'on another node',
  duplicate: 'duplicate',
  'no-port': 'no such port',
}

/** A reason that a newer agent sends is shown as it is. */
export const reasonText = (reason: string): string =>
  reasonWords[reason as EndpointReason] ?? reason.replaceAll('-', ' ')

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

/** An agent that knows no states sends rows without them. */
function completed(service: LiveService): LiveService {
  if (isState(service.state ?? '')) return service
  return { ...service, state: service.endpoints > 0 ? 'serving' : 'refused', changedBy: service.changedBy ?? 0 }
}

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

/** Why it is in its state, in a few words. Empty: there is nothing to say. */
export function whyText(service: LiveService): string {
  const { state, total, internalTrafficPolicy, problems } = service
  switch (state) {
    case 'refused':
      return total === undefined ? 'no endpoint' : total === 0 ? 'no endpoint in the cluster' : 'no endpoint is ready'
    case 'dropped':
      return internalTrafficPolicy === 'Local' ? 'no endpoint on this node' : 'outside traffic: none on this node'
    case 'differs':
      return 'the data plane differs, repair due'
    case 'draining':
      return 'only terminating ones left'
    default:
      return [problems[0] ?? '', leftOutText(service)].filter(Boolean).join('; ')
  }
}

/** `1 not ready, 6 hinted to another zone` */
export const leftOutText = ({ leftOut = {} }: LiveService): string =>
  Object.entries(leftOut)
    .map(([reason, count]) => `${count} ${reasonText(reason)}`)
    .join(', ')

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
