import { create } from '@bufbuild/protobuf'
import { defaultAffinitySeconds, ipSetOf, isPort, localv1 } from '@kpng/api'
import { type Fields, fieldsOf, listOf, protocolOf, type Report, readObject, shown, textOf, textsOf } from './fields.js'
import type { KeptKeys } from './globs.js'
import { loadBalancerOf, sourceRangeFilters } from './load-balancer.js'

/** On a Service: it gets all traffic to its addresses, whatever the protocol and port. Kubernetes itself has no field for it. */
const mapIpAnnotation = 'kpng.sigs.k8s.io/map-ip'

/**
 * A Service as kpng serves it, or undefined if a proxy has nothing to do for it (checklist 5). Headless Services are read:
 * whether they are served is the caller's decision (see selectionForProxy).
 */
export function serviceFromKubernetes(object: unknown, kept: KeptKeys, report: Report): localv1.Service | undefined {
  const read = readObject(object, report)
  if (!read) return undefined
  const { metadata } = read
  const spec = fieldsOf(read.object.spec, report, 'spec')
  const type = textOf(spec.type, report, 'spec', 'type') || 'ClusterIP'
  if (type === 'ExternalName') return undefined

  const cluster = clusterIpsOf(spec, report)
  if (!cluster) return undefined
  const external = addressesOf(textsOf(spec.externalIPs, report, 'spec', 'externalIPs'), 'spec.externalIPs', report)
  const status = fieldsOf(read.object.status, report, 'status')
  const balancer = loadBalancerOf(status, report)
  const externallyAccessible =
    type === 'LoadBalancer' || type === 'NodePort' || external.v4.length + external.v6.length > 0
  const externalTrafficToLocal =
    externallyAccessible && isLocal(spec.externalTrafficPolicy, 'externalTrafficPolicy', report)

  // Written out rather than made by `create`: there are thousands of them at the start.
  return {
    $typeName: 'localv1.Service',
    namespace: metadata.namespace,
    name: metadata.name,
    type,
    ips: {
      $typeName: 'localv1.ServiceIPs',
      clusterIps: { $typeName: 'localv1.IPSet', v4: cluster.v4, v6: cluster.v6 },
      externalIps: { $typeName: 'localv1.IPSet', ...external },
      headless: cluster.headless,
      ...balancer,
    },
    mapIp: metadata.annotations[mapIpAnnotation] === 'true',
    ports: portsOf(spec, report),
    externalTrafficToLocal,
    internalTrafficToLocal: isLocal(spec.internalTrafficPolicy, 'internalTrafficPolicy', report),
    labels: kept.labels(metadata.labels),
    annotations: kept.annotations(metadata.annotations),
    // For every type: kube-proxy also serves and filters an address that is left over from an earlier type.
    ipFilters: sourceRangeFilters(spec, balancer.loadBalancerIps, report),
    sessionAffinity: affinityOf(spec, report),
    // Only such Services have a health check (checklist 42); in others the number is left over from an earlier type.
    healthCheckNodePort: type === 'LoadBalancer' && externalTrafficToLocal ? healthCheckNodePortOf(spec, report) : 0,
  }
}

interface ClusterIps {
  readonly v4: string[]
  readonly v6: string[]
  readonly headless: boolean
}

/** Both fields hold the same; `clusterIPs` is absent before Kubernetes 1.20 and in manifests. Undefined: none allocated. */
function clusterIpsOf(spec: Fields, report: Report): ClusterIps | undefined {
  const listed = textsOf(spec.clusterIPs, report, 'spec', 'clusterIPs')
  const single = textOf(spec.clusterIP, report, 'spec', 'clusterIP')
  const given = listed.length > 0 ? listed : single === '' ? [] : [single]
  if (given.length === 0) return undefined
  if (given.includes('None')) return { v4: [], v6: [], headless: true }
  const set = addressesOf(given, listed.length > 0 ? 'spec.clusterIPs' : 'spec.clusterIP', report)
  if (set.v4.length + set.v6.length > 0) return { ...set, headless: false }
  report('None of its cluster IPs can be used. The Service is left out.')
  return undefined
}

const addressesOf = (texts: readonly string[], field: string, report: Report) =>
  ipSetOf(texts, (text) => report(`${field} has ${shown(text)}, which is not an IP address. The address is left out.`))

/** An unknown policy counts as Cluster, the default, as in kube-proxy. */
function isLocal(policy: unknown, field: string, report: Report): boolean {
  const text = textOf(policy, report, 'spec', field)
  if (text !== '' && text !== 'Local' && text !== 'Cluster') {
    report(`spec.${field} is ${shown(text)}; Cluster or Local was expected. Cluster is used.`)
  }
  return text === 'Local'
}

function affinityOf(spec: Fields, report: Report): localv1.Service['sessionAffinity'] {
  const affinity = textOf(spec.sessionAffinity, report, 'spec', 'sessionAffinity')
  if (affinity !== 'ClientIP') {
    if (affinity !== '' && affinity !== 'None') {
      report(`spec.sessionAffinity is ${shown(affinity)}; None or ClientIP was expected. None is used.`)
    }
    return { case: undefined }
  }
  const config = fieldsOf(spec.sessionAffinityConfig, report, 'spec', 'sessionAffinityConfig')
  const { timeoutSeconds } = fieldsOf(config.clientIP, report, 'spec', 'sessionAffinityConfig', 'clientIP')
  return clientIpAffinity(timeoutSeconds, 'spec.sessionAffinityConfig.clientIP.timeoutSeconds', report)
}

function healthCheckNodePortOf(spec: Fields, report: Report): number {
  const port = spec.healthCheckNodePort ?? 0
  if (port === 0 || isPort(port)) return port
  report(`spec.healthCheckNodePort is ${shown(port)}; a port is 1 to 65535. The Service has no health check.`)
  return 0
}

/** As in the API server: a day. */
const longestAffinitySeconds = 86_400

/** Affinity by the client's address. A bad timeout is reported, and the default is used (checklist 37, 38). */
export function clientIpAffinity(
  timeoutSeconds: unknown,
  field: string,
  report: Report,
): localv1.Service['sessionAffinity'] {
  const given = timeoutSeconds ?? defaultAffinitySeconds
  const usable = isAffinityTime(given)
  if (!usable) {
    report(
      `${field} is ${shown(given)}; 1 to ${longestAffinitySeconds} was expected. ${defaultAffinitySeconds} is used.`,
    )
  }
  const value = create(localv1.ClientIPAffinitySchema, { timeoutSeconds: usable ? given : defaultAffinitySeconds })
  return { case: 'clientIp', value }
}

const isAffinityTime = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= longestAffinitySeconds

/** The ports of a Service. Bad ones are reported and left out; the others work (checklist 11, 18, 19). */
export function portsOf(spec: Fields, report: Report): localv1.PortMapping[] {
  const ports: localv1.PortMapping[] = []
  const names = new Set<string>()
  const numbers = new Set<string>()
  for (const [index, item] of listOf(spec.ports, report, 'spec', 'ports').entries()) {
    const where = `spec.ports[${index}]`
    const port = portOf(fieldsOf(item, report, 'spec', 'ports', index), where, report)
    if (!port) continue
    // Endpoints are found by the port's name, so two ports of one name could not be told apart.
    if (names.has(port.name)) {
      report(`${where} has the name ${shown(port.name)} of an earlier port. The port is left out.`)
      continue
    }
    const number = `${port.protocol}/${port.port}`
    if (numbers.has(number)) {
      report(`${where} is port ${port.port} of the same protocol as an earlier one. The port is left out.`)
      continue
    }
    names.add(port.name)
    numbers.add(number)
    ports.push(port)
  }
  return ports
}

function portOf(fields: Fields, where: string, report: Report): localv1.PortMapping | undefined {
  const { port, nodePort = 0, targetPort } = fields
  if (!isPort(port)) {
    report(`${where}.port is ${shown(port)}; a port is 1 to 65535. The port is left out.`)
    return undefined
  }
  const protocol = protocolOf(fields.protocol)
  if (protocol === undefined) {
    report(`${where}.protocol is ${shown(fields.protocol)}; TCP, UDP or SCTP was expected. The port is left out.`)
    return undefined
  }
  return {
    $typeName: 'localv1.PortMapping',
    name: textOf(fields.name, report, `${where}.name`),
    protocol,
    port,
    nodePort: nodePortOf(nodePort, where, report),
    ...targetPortOf(targetPort, port, where, report),
  }
}

function nodePortOf(nodePort: unknown, where: string, report: Report): number {
  if (nodePort === null || nodePort === 0) return 0
  if (isPort(nodePort)) return nodePort
  report(`${where}.nodePort is ${shown(nodePort)}; a port is 1 to 65535. The port has no node port.`)
  return 0
}

/** A number or a name; missing, 0 and empty are the port itself, as the API server fills it in. */
function targetPortOf(
  target: unknown,
  port: number,
  where: string,
  report: Report,
): Pick<localv1.PortMapping, 'targetPort' | 'targetPortName'> {
  const number = (targetPort: number) => ({ targetPort, targetPortName: '' })
  if (target === undefined || target === null || target === 0 || target === '') return number(port)
  if (isPort(target)) return number(target)
  if (typeof target === 'string') return { targetPort: 0, targetPortName: target }
  report(`${where}.targetPort is ${shown(target)}; a port (1 to 65535) or its name was expected. ${port} is used.`)
  return number(port)
}
