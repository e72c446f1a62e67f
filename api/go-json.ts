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

// jq scripts for Go kpng must work unchanged, so this prints what Go's encoding/json printed for its generated structs: Go field
// names in the order of Go's .proto file; no empty fields; enums as numbers; {} for a message that is set but empty; SessionAffinity
// and Endpoints always. Fields that kpng adds come after the fields of Go kpng.

/** One line of `kpng-json`: a service and its endpoints on this node. */
export function toGoJson(item: { readonly service: Service; readonly endpoints: readonly Endpoint[] }): string {
  const endpoints = item.endpoints.length === 0 ? null : item.endpoints.map(endpointForGo)
  return JSON.stringify({ Service: serviceForGo(item.service), Endpoints: endpoints })
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

const serviceForGo = (service: Service): GoValue => ({
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
  Ports: ifAny(service.ports, portForGo),
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

const portForGo = (port: PortMapping): GoValue => ({
  Name: ifText(port.name),
  Protocol: ifNumber(port.protocol),
  Port: ifNumber(port.port),
  NodePort: ifNumber(port.nodePort),
  TargetPort: ifNumber(port.targetPort),
  TargetPortName: ifText(port.targetPortName),
})

const endpointForGo = (endpoint: Endpoint): GoValue => ({
  Hostname: ifText(endpoint.hostname),
  IPs: endpoint.ips && ipSetForGo(endpoint.ips),
  Local: ifTrue(endpoint.local),
  PortOverrides: ifAny(endpoint.portOverrides, portNameForGo),
  Scopes: endpoint.scopes && scopesForGo(endpoint.scopes),
  Conditions: endpoint.conditions && conditionsForGo(endpoint.conditions),
})

const portNameForGo = (port: PortName): GoValue => ({
  Name: ifText(port.name),
  Port: ifNumber(port.port),
  Scopes: port.scopes && scopesForGo(port.scopes),
})

const scopesForGo = (scopes: EndpointScopes): GoValue => ({
  Internal: ifTrue(scopes.internal),
  External: ifTrue(scopes.external),
})

const conditionsForGo = (conditions: EndpointConditions): GoValue => ({
  Ready: ifTrue(conditions.ready),
  Serving: ifTrue(conditions.serving),
  Terminating: ifTrue(conditions.terminating),
})
