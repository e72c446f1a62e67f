import { defaultAffinitySeconds } from '@kpng/api'
import { equal } from '../objects/json.js'
import type { Service, ServiceSpec } from '../objects/kinds.js'

export const needsClusterIp = ({ type }: ServiceSpec): boolean => type !== 'ExternalName'
export const needsNodePort = ({ type }: ServiceSpec): boolean => type === 'NodePort' || type === 'LoadBalancer'
export const isHeadless = (spec: ServiceSpec): boolean => spec.clusterIP === 'None' || spec.clusterIPs?.[0] === 'None'
/** Nobody chooses its endpoints, so its slices may be of any family. */
export const isHeadlessWithoutSelector = (spec: ServiceSpec): boolean =>
  isHeadless(spec) && Object.keys(spec.selector ?? {}).length === 0
export const isExternal = (spec: ServiceSpec): boolean =>
  needsNodePort(spec) || (spec.type === 'ClusterIP' && (spec.externalIPs?.length ?? 0) > 0)
export const needsHealthCheckPort = (spec: ServiceSpec): boolean =>
  spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local'

/** What a Service has when its writer did not say: the API server's defaults, and on an update what it had before. */
export function defaultService(service: Service, old?: Service): void {
  service.spec ??= {}
  const { spec } = service
  spec.type ??= 'ClusterIP'
  spec.sessionAffinity ??= 'None'
  if (spec.sessionAffinity === 'None') delete spec.sessionAffinityConfig
  if (spec.sessionAffinity === 'ClientIP') {
    const timeoutSeconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds
    spec.sessionAffinityConfig = { clientIP: { timeoutSeconds } }
  }
  for (const port of spec.ports ?? []) {
    port.protocol ||= 'TCP'
    if (port.targetPort === undefined || port.targetPort === 0 || port.targetPort === '') port.targetPort = port.port
    if (port.nodePort === 0) delete port.nodePort
  }
  if (isExternal(spec)) spec.externalTrafficPolicy ||= 'Cluster'
  if (needsClusterIp(spec)) spec.internalTrafficPolicy ??= 'Cluster'
  if (spec.type === 'LoadBalancer') spec.allocateLoadBalancerNodePorts ??= true
  service.status = { loadBalancer: service.status?.loadBalancer ?? {}, ...service.status }
  if (old) keepAllocated(spec, old.spec)
  syncClusterIps(spec, old?.spec)
  if (old) dropForType(service, old)
}

/** A `kubectl replace` without addresses and ports keeps those the Service has. */
function keepAllocated(spec: ServiceSpec, old: ServiceSpec): void {
  if (needsClusterIp(old) && needsClusterIp(spec)) {
    if (!spec.clusterIP) spec.clusterIP = old.clusterIP
    if (!spec.clusterIPs?.length && spec.clusterIP === old.clusterIP) spec.clusterIPs = [...(old.clusterIPs ?? [])]
  }
  if (needsNodePort(old) && needsNodePort(spec)) {
    const had = new Map(old.ports?.map((port) => [`${port.protocol} ${port.port}`, port.nodePort]))
    const used = new Set(spec.ports?.map((port) => `${port.protocol} ${port.nodePort}`))
    for (const port of spec.ports ?? []) {
      const before = had.get(`${port.protocol} ${port.port}`)
      if (!port.nodePort && before && !used.has(`${port.protocol} ${before}`)) port.nodePort = before
    }
  }
  if (needsHealthCheckPort(old) && needsHealthCheckPort(spec)) spec.healthCheckNodePort ||= old.healthCheckNodePort
}

/** `clusterIP` is the first of `clusterIPs`; a writer that knows only one of them changes both. */
function syncClusterIps(spec: ServiceSpec, old?: ServiceSpec): void {
  if (!old) {
    if (spec.clusterIP && !spec.clusterIPs?.length) spec.clusterIPs = [spec.clusterIP]
    else if (!spec.clusterIP && spec.clusterIPs?.length) spec.clusterIP = spec.clusterIPs[0]
    return
  }
  const changed = (spec.clusterIP ?? '') !== (old.clusterIP ?? '')
  if (!changed || !equal(spec.clusterIPs ?? [], old.clusterIPs ?? [])) return
  if (!spec.clusterIP) delete spec.clusterIPs
  else spec.clusterIPs = [spec.clusterIP, ...(spec.clusterIPs ?? []).slice(1)]
}

/** A change of type leaves behind what only the old type had, unless the writer set it anew. */
function dropForType(service: Service, { spec: old, status: oldStatus }: Service): void {
  const { spec } = service
  const dropIfSame = (...names: (keyof ServiceSpec)[]) => {
    for (const name of names) if (equal(spec[name], old[name])) delete spec[name]
  }
  if (needsClusterIp(old) && !needsClusterIp(spec) && equal(spec.clusterIPs, old.clusterIPs)) {
    for (const name of ['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) delete spec[name]
    dropIfSame('internalTrafficPolicy')
  }
  if (needsNodePort(old) && !needsNodePort(spec)) {
    const had = new Set(old.ports?.map(({ nodePort }) => nodePort))
    for (const port of spec.ports ?? []) if (had.has(port.nodePort)) delete port.nodePort
  }
  if (needsHealthCheckPort(old) && !needsHealthCheckPort(spec)) dropIfSame('healthCheckNodePort')
  if (isExternal(old) && !isExternal(spec)) dropIfSame('externalTrafficPolicy')
  if (old.type === 'LoadBalancer' && spec.type !== 'LoadBalancer') {
    dropIfSame('allocateLoadBalancerNodePorts', 'loadBalancerClass')
    if (equal(service.status?.loadBalancer, oldStatus?.loadBalancer))
      service.status = { ...service.status, loadBalancer: {} }
  }
  dropSecondFamily(spec, old)
}

/** From dual stack to SingleStack, the second address goes when the writer left it as it was. */
function dropSecondFamily(spec: ServiceSpec, old: ServiceSpec): void {
  const wasDual = old.ipFamilyPolicy !== undefined && old.ipFamilyPolicy !== 'SingleStack'
  if (!wasDual || spec.ipFamilyPolicy !== 'SingleStack' || !needsClusterIp(spec)) return
  if (equal(spec.clusterIPs, old.clusterIPs)) spec.clusterIPs = spec.clusterIPs?.slice(0, 1)
  if (equal(spec.ipFamilies, old.ipFamilies)) spec.ipFamilies = spec.ipFamilies?.slice(0, 1)
}
