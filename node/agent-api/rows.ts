import {
  type EndpointRow,
  type FrontendRow,
  type globalv1,
  ipsOf,
  type LiveService,
  type LiveSync,
  localv1,
  type NodeRow,
  type ServiceRow,
} from '@kpng/api'
import type { NodeView, ServiceEndpoints } from '@kpng/client'
import { endpointKey, type FrontendTable } from '@kpng/dataplane'
import { diagnose, type Facts, waysOf } from '@kpng/diagnose'
import type { ServiceFactsOf } from './service-facts.js'

// What this node serves, as rows of lists.

/** What rows are made of. */
export interface RowSource {
  readonly table: FrontendTable
  /** Of the data plane. Default: everything. */
  readonly features?: Facts['features']
  /** What the core knows about the endpoints of a Service. Undefined: the core is not in this process. */
  readonly factsOf?: ServiceFactsOf | undefined
  /** The row is about the whole cluster: that a node has no endpoint of its own is no matter. */
  readonly ofCluster?: boolean
}

/** @param namespace undefined: all */
export function serviceRows(view: NodeView, source: RowSource, namespace?: string): ServiceRow[] {
  return itemsIn(view, namespace).map(([path, item]) => serviceRow(path, item, source).row)
}

/** @param differs the data plane was found not to hold what it should */
function serviceRow(path: string, item: ServiceEndpoints, source: RowSource, differs = false) {
  const { service, endpoints } = item
  const { table, features, ofCluster = false } = source
  const facts = source.factsOf?.(path, endpoints.length)
  const { verdict, headline, reason, findings, used, total } = diagnose({
    ...{ service: path, item, features, ofCluster, differs },
    ...{ ways: waysOf(table, path), problems: table.problemsOf(path), kubernetes: notAsked },
    selection: facts ? { value: { isKnown: true, ...facts } } : notAsked,
  })
  const { ips } = service
  const row: ServiceRow = {
    namespace: service.namespace,
    name: service.name,
    type: service.type,
    clusterIps: allIps(ips?.clusterIps),
    externalIps: [...allIps(ips?.loadBalancerIps), ...allIps(ips?.externalIps)],
    ports: service.ports.map(portText),
    endpoints: used,
    internalTrafficPolicy: service.internalTrafficToLocal ? 'Local' : 'Cluster',
    externalTrafficPolicy: service.externalTrafficToLocal ? 'Local' : 'Cluster',
    sessionAffinity: service.sessionAffinity.case !== undefined,
    ...{ verdict, headline, reason, findings: findings.map(({ code }) => code) },
    ...(total === undefined ? {} : { total }),
    ...labelsOf(service.labels),
  }
  return { row, facts }
}

const notAsked = { unknown: 'nobody was asked for a list' }

/** A row of the live page. @param lastChange undefined: none since the start */
export function liveRow(
  path: string,
  item: ServiceEndpoints,
  source: RowSource,
  { lastChange, differs }: { readonly lastChange: LiveSync | undefined; readonly differs: boolean },
): LiveService {
  const { row, facts } = serviceRow(path, item, source, differs)
  const { 'hints-other-node': byNode = 0, 'hints-other-zone': byZone = 0 } = facts?.leftOut ?? {}
  return {
    ...row,
    hints: byNode + byZone > 0,
    sourceRanges: source.table.wantedBy(path).some(({ allowedSources }) => allowedSources !== undefined),
    changedBy: lastChange?.number ?? 0,
    ...(lastChange ? { changedAt: lastChange.at } : {}),
  }
}

export function endpointRows(view: NodeView, namespace?: string): EndpointRow[] {
  const rows: EndpointRow[] = []
  for (const [, { service, endpoints }] of itemsIn(view, namespace)) {
    for (const { ips, hostname, local } of endpoints) {
      rows.push({
        namespace: service.namespace,
        service: service.name,
        ips: allIps(ips),
        hostname,
        isLocal: local,
      })
    }
  }
  return rows
}

export function frontendRows(table: FrontendTable, namespace?: string): FrontendRow[] {
  const rows: FrontendRow[] = []
  for (const { id, kind, service, portName, inside, outside } of table.all()) {
    if (namespace !== undefined && !service.startsWith(`${namespace}/`)) continue
    const endpoints = inside.endpoints.map(endpointKey)
    const hasOneList = inside.endpoints === outside.endpoints
    rows.push({
      id,
      kind,
      service,
      portName,
      inside: endpoints,
      outside: hasOneList ? endpoints : outside.endpoints.map(endpointKey),
    })
  }
  return rows
}

export const nodeRow = (
  { name, addresses, topology, podCidrs, labels }: globalv1.Node,
  localName: string,
): NodeRow => ({
  ...labelsOf(labels),
  name,
  addresses,
  zone: topology?.zone ?? '',
  podCidrs,
  isLocal: name === localName,
})

const labelsOf = (labels: Readonly<Record<string, string>>) => (Object.keys(labels).length === 0 ? {} : { labels })

const itemsIn = ({ services }: NodeView, namespace: string | undefined): [string, ServiceEndpoints][] =>
  [...services]
    .filter(([path]) => namespace === undefined || path.startsWith(`${namespace}/`))
    .sort(([a], [b]) => (a < b ? -1 : 1))

/** Most sets have one family, and large clusters have many sets. */
function allIps(set: localv1.IPSet | undefined): readonly string[] {
  const [v4, v6] = [ipsOf(set, 'IPv4'), ipsOf(set, 'IPv6')]
  return v6.length === 0 ? v4 : v4.length === 0 ? v6 : [...v4, ...v6]
}

const portText = ({ port, nodePort, protocol }: localv1.PortMapping): string =>
  `${port}${nodePort > 0 ? `:${nodePort}` : ''}/${(localv1.Protocol[protocol] ?? '').toLowerCase()}`
