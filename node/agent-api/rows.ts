import {
  type EndpointRow,
  type FrontendRow,
  type globalv1,
  ipsOf,
  localv1,
  type NodeRow,
  type ServiceRow,
} from '@kpng/api'
import type { NodeView, ServiceEndpoints } from '@kpng/client'
import { endpointKey, type FrontendTable } from '@kpng/dataplane'

// What this node serves, as rows of lists.

/** @param namespace undefined: all */
export function serviceRows(view: NodeView, table: FrontendTable, namespace?: string): ServiceRow[] {
  return itemsIn(view, namespace).map(([path, item]) => serviceRow(path, item, table))
}

export function serviceRow(path: string, { service, endpoints }: ServiceEndpoints, table: FrontendTable): ServiceRow {
  const { ips } = service
  return {
    namespace: service.namespace,
    name: service.name,
    type: service.type,
    clusterIps: allIps(ips?.clusterIps),
    externalIps: [...allIps(ips?.loadBalancerIps), ...allIps(ips?.externalIps)],
    ports: service.ports.map(portText),
    endpoints: endpoints.length,
    internalTrafficPolicy: service.internalTrafficToLocal ? 'Local' : 'Cluster',
    externalTrafficPolicy: service.externalTrafficToLocal ? 'Local' : 'Cluster',
    sessionAffinity: service.sessionAffinity.case !== undefined,
    problems: table.problemsOf(path).map(({ sentence }) => sentence),
    ...labelsOf(service.labels),
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
