import { parseIp, zoneLabel } from '@kpng/api'
import type { Endpoint, IpFamily, Node, Pod, Service, SlicePort } from '../objects/kinds.js'
import { type KubeObject, keyOf } from '../objects/types.js'
import { isHeadless } from '../services/defaults.js'

export const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false

/** A pod counts once it has an address and until it has ended; a terminating one counts too. */
export const hasEndpoint = ({ status }: Pod): boolean =>
  status?.phase !== 'Succeeded' && status?.phase !== 'Failed' && (status?.podIPs?.length ?? 0) > 0

/** The ports of a Service on one pod: names are looked up in its containers, and may differ between pods. */
export function portsOf(service: Service, pod: Pod): SlicePort[] {
  return (service.spec.ports ?? []).flatMap(({ name = '', protocol = 'TCP', appProtocol, port, targetPort = port }) => {
    const number = typeof targetPort === 'number' ? targetPort : namedPort(pod, targetPort, protocol)
    if (number === undefined) return []
    return [{ name, port: number, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }]
  })
}

function namedPort({ spec }: Pod, name: string, protocol: string): number | undefined {
  const ports = (spec.containers ?? []).flatMap((container) => container.ports ?? [])
  return ports.find((port) => port.name === name && (port.protocol ?? 'TCP') === protocol)?.containerPort
}

/** Which nodes and zones should use an endpoint, in the simple form: those it is in. */
function hintsFor(service: Service, endpoint: Endpoint): Endpoint['hints'] {
  const { trafficDistribution } = service.spec
  const { zone, nodeName } = endpoint
  if (!trafficDistribution || endpoint.conditions?.ready === false) return undefined
  const hints = {
    ...(zone && { forZones: [{ name: zone }] }),
    ...(nodeName && trafficDistribution === 'PreferSameNode' && { forNodes: [{ name: nodeName }] }),
  }
  return Object.keys(hints).length === 0 ? undefined : hints
}

function endpointOf(service: Service, pod: Pod, address: string, node: Node | undefined): Endpoint {
  const serving = isReady(pod)
  const terminating = pod.metadata.deletionTimestamp !== undefined
  const ready = service.spec.publishNotReadyAddresses === true || (serving && !terminating)
  const zone = node?.metadata.labels?.[zoneLabel]
  const { name, namespace, uid } = pod.metadata
  const endpoint: Endpoint = {
    addresses: [address],
    conditions: { ready, serving, terminating },
    ...(pod.spec.nodeName ? { nodeName: pod.spec.nodeName } : {}),
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(zone ? { zone } : {}),
  }
  const hints = hintsFor(service, endpoint)
  return hints ? { ...endpoint, hints } : endpoint
}

/** Endpoints that share a slice: one address type, one set of ports. */
export interface EndpointGroup {
  addressType: IpFamily
  ports: SlicePort[]
  endpoints: Endpoint[]
}

export const groupKey = (addressType: string, ports: readonly SlicePort[]): string =>
  `${addressType} ${JSON.stringify(ports.map(({ name, port, protocol, appProtocol }) => [name, port, protocol, appProtocol]))}`

/** What the slices of a Service should hold, from the pods it selects. A pure function. */
export function desiredGroups(
  service: Service,
  pods: readonly Pod[],
  nodeOf: (name: string) => Node | undefined,
): EndpointGroup[] {
  const groups = new Map<string, EndpointGroup>()
  for (const addressType of service.spec.ipFamilies ?? []) {
    for (const pod of pods) {
      const address = pod.status?.podIPs?.find(({ ip }) => parseIp(ip)?.family === addressType)?.ip
      if (!address || !hasEndpoint(pod)) continue
      const ports = portsOf(service, pod)
      const key = groupKey(addressType, ports)
      const group = groups.get(key) ?? { addressType, ports, endpoints: [] }
      group.endpoints.push(endpointOf(service, pod, address, nodeOf(pod.spec.nodeName ?? '')))
      groups.set(key, group)
    }
  }
  return [...groups.values()]
}

/** Labels that slices and Endpoints of a Service carry: the Service's own, and the one that tells proxies to skip them. */
export const inheritedLabels = (service: Service): Record<string, string> => ({
  ...service.metadata.labels,
  ...(isHeadless(service.spec) ? { 'service.kubernetes.io/headless': '' } : {}),
})

const serviceNameLabel = 'kubernetes.io/service-name'
const managedByLabel = 'endpointslice.kubernetes.io/managed-by'

/** The labels of the slices that a controller makes for a Service. */
export const sliceLabels = (service: Service, managedBy: string): Record<string, string> => ({
  ...inheritedLabels(service),
  [serviceNameLabel]: service.metadata.name,
  [managedByLabel]: managedBy,
})

/** The key of the Service of a slice that this controller made; undefined if it did not make it. */
export function serviceOf({ metadata: { namespace, labels } }: KubeObject, managedBy: string): string | undefined {
  const name = labels?.[serviceNameLabel]
  return name && labels?.[managedByLabel] === managedBy ? keyOf(namespace, name) : undefined
}
