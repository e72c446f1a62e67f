import type {
  Endpoint,
  EndpointConditions,
  EndpointScopes,
  IPFilter,
  IPSet,
  PortMapping,
  PortName,
  Service,
} from './gen/localv1/api_pb.js'
import { type Family, families, ipsOf } from './ip.js'

// jq scripts for Go kpng must work unchanged, so this prints what Go's encoding/json printed for its generated structs: Go field
// names in the order of Go's .proto file; no empty fields; enums as numbers; {} for a message that is set but empty; SessionAffinity
// and Endpoints always. Fields that kpng adds come after the fields of Go kpng, and only where the fields of Go kpng do not say the same:
// docs/json-lines.md describes all of them.

/** One line of `kpng-json`: a service and its endpoints on this node. */
export function toGoJson(item: Item): string {
  const endpoints = item.endpoints.length === 0 ? null : item.endpoints.map((each) => endpointForGo(each, item.service))
  return JSON.stringify({ Service: serviceForGo(item), Endpoints: endpoints })
}

interface Item {
  readonly service: Service
  readonly endpoints: readonly Endpoint[]
}

type GoValue = string | number | boolean | null | GoValue[] | { [name: string]: GoValue | undefined } | undefined

const ifText = (value: string) => value || undefined
const ifNumber = (value: number) => value || undefined
const ifTrue = (value: boolean) => value || undefined
const ifAny = <T>(values: readonly T[], each: (value: T) => GoValue): GoValue =>
  values.length > 0 ? values.map(each) : undefined

/** Go prints the keys of a map in order. */
const ifEntries = (values: { [key: string]: string }): GoValue => {
  const keys = Object.keys(values).sort()
  return keys.length > 0 ? Object.fromEntries(keys.map((key) => [key, values[key]])) : undefined
}

const serviceForGo = ({ service, endpoints }: Item): GoValue => ({
  Namespace: ifText(service.namespace),
  Name: ifText(service.name),
  Type: ifText(service.type),
  Labels: ifEntries(service.labels),
  Annotations: ifEntries(service.annotations),
  IPs: service.ips && {
    ClusterIPs: service.ips.clusterIps && ipSetForGo(service.ips.clusterIps),
    ExternalIPs: service.ips.externalIps && ipSetForGo(service.ips.externalIps),
    LoadBalancerIPs: service.ips.loadBalancerIps && ipSetForGo(service.ips.loadBalancerIps),
    Headless: ifTrue(service.ips.headless),
    LoadBalancerProxyIPs: service.ips.loadBalancerProxyIps && ipSetForGo(service.ips.loadBalancerProxyIps),
  },
  IPFilters: ifAny(service.ipFilters, ipFilterForGo),
  MapIP: ifTrue(service.mapIp),
  Ports: ifAny(service.ports, (port) => portForGo(port, endpoints)),
  ExternalTrafficToLocal: ifTrue(service.externalTrafficToLocal),
  SessionAffinity:
    service.sessionAffinity.case === 'clientIp'
      ? { ClientIP: { TimeoutSeconds: ifNumber(service.sessionAffinity.value.timeoutSeconds) } }
      : null,
  InternalTrafficToLocal: ifTrue(service.internalTrafficToLocal),
  HealthCheckNodePort: ifNumber(service.healthCheckNodePort),
})

const ipSetForGo = (set: IPSet): GoValue => ({ V4: ifAny(set.v4, (ip) => ip), V6: ifAny(set.v6, (ip) => ip) })

const ipFilterForGo = (filter: IPFilter): GoValue => ({
  TargetIPs: filter.targetIps && ipSetForGo(filter.targetIps),
  SourceRanges: ifAny(filter.sourceRanges, (range) => range),
})

const portForGo = (port: PortMapping, endpoints: readonly Endpoint[]): GoValue => ({
  Name: ifText(port.name),
  Protocol: ifNumber(port.protocol),
  Port: ifNumber(port.port),
  NodePort: ifNumber(port.nodePort),
  TargetPort: ifNumber(port.targetPort),
  TargetPortName: ifText(port.targetPortName),
  ServedFamilies: servedElsewhere(port, endpoints) && {
    V4: ifTrue(port.servedFamilies?.v4 === true),
    V6: ifTrue(port.servedFamilies?.v6 === true),
  },
})

/** Whether a family is served in the cluster for which this node may have no endpoint to use. */
const servedElsewhere = ({ name, servedFamilies }: PortMapping, endpoints: readonly Endpoint[]): true | undefined => {
  const isServedHere = (family: Family) =>
    endpoints.some(({ ips, scopes, portOverrides }) => {
      const override = portOverrides.find((each) => each.name === name)
      const { internal, external, cluster } = override?.scopes ?? scopes ?? everywhere
      const hasPort = override !== undefined || portOverrides.length === 0
      return hasPort && internal && external && cluster && ipsOf(ips, family).length > 0
    })
  const isServed = (family: Family) => (family === 'IPv4' ? servedFamilies?.v4 : servedFamilies?.v6)
  return families.some((family) => isServed(family) && !isServedHere(family)) || undefined
}

const everywhere = { internal: true, external: true, cluster: true }

const endpointForGo = (endpoint: Endpoint, service: Service): GoValue => ({
  Hostname: ifText(endpoint.hostname),
  IPs: endpoint.ips && ipSetForGo(endpoint.ips),
  Local: ifTrue(endpoint.local),
  PortOverrides: ifAny(endpoint.portOverrides, (port) => portNameForGo(port, service)),
  Scopes: endpoint.scopes && scopesForGo(endpoint.scopes),
  Conditions: endpoint.conditions && conditionsForGo(endpoint.conditions),
})

const portNameForGo = (port: PortName, { ports }: Service): GoValue => ({
  Name: ifText(port.name),
  Port: ifNumber(port.port),
  Scopes: port.scopes && scopesForGo(port.scopes),
  // Usually that of the Service's port. If not, the endpoint does not serve that port.
  Protocol: ports.some(({ name, protocol }) => name === port.name && protocol === port.protocol)
    ? undefined
    : port.protocol,
})

const scopesForGo = ({ internal, external, cluster }: EndpointScopes): GoValue => ({
  Internal: ifTrue(internal),
  External: ifTrue(external),
  // Missing: the same as External.
  Cluster: cluster === external ? undefined : cluster,
})

const conditionsForGo = (conditions: EndpointConditions): GoValue => ({
  Ready: ifTrue(conditions.ready),
  Serving: ifTrue(conditions.serving),
  Terminating: ifTrue(conditions.terminating),
})
