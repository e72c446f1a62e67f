import { create } from '@bufbuild/protobuf'
import { families, isPort, localv1 } from '@kpng/api'
import { protocolOf, type Report, shown } from '../../kubernetes/fields.js'
import { filtersByFamily } from '../../kubernetes/load-balancer.js'
import { clientIpAffinity } from '../../kubernetes/service.js'
import { cidrsIn, ipSetIn, type StatePort, type StateService } from './state-format.js'

/** Reads a service of a state file. Its name and namespace have been checked. */
export function serviceFromState(
  given: StateService,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  report: Report,
): localv1.Service {
  const ips = given.ips ? ipsIn(given.ips, report) : undefined
  return create(localv1.ServiceSchema, {
    namespace,
    name,
    type: given.type ?? 'ClusterIP',
    ips,
    mapIp: given.mapip ?? false,
    ports: portsIn(given.ports, report),
    externalTrafficToLocal: given.externaltraffictolocal ?? false,
    internalTrafficToLocal: given.internaltraffictolocal ?? false,
    labels: { ...given.labels },
    annotations: { ...given.annotations },
    ipFilters: filtersIn(given.ipfilters, ips?.loadBalancerIps, report),
    sessionAffinity: affinityIn(given.sessionaffinity, report),
    healthCheckNodePort: portOrNone(given.healthchecknodeport, 'healthchecknodeport', report),
  })
}

const ipsIn = (given: NonNullable<StateService['ips']>, report: Report): localv1.ServiceIPs =>
  create(localv1.ServiceIPsSchema, {
    clusterIps: ipSetIn(given.clusterips, 'ips.clusterips', report),
    externalIps: ipSetIn(given.externalips, 'ips.externalips', report),
    headless: given.headless ?? false,
    loadBalancerIps: ipSetIn(given.loadbalancerips, 'ips.loadbalancerips', report),
    loadBalancerProxyIps: ipSetIn(given.loadbalancerproxyips, 'ips.loadbalancerproxyips', report),
  })

function portsIn(given: StateService['ports'], report: Report): localv1.PortMapping[] {
  const ports: localv1.PortMapping[] = []
  const taken = new Set<string>()
  for (const [index, item] of (given ?? []).entries()) {
    const port = portIn(item ?? {}, `ports[${index}]`, report)
    if (!port) continue
    const keys = [`${port.protocol}/${port.port}`, ...(port.name === '' ? [] : [`name ${port.name}`])]
    if (keys.some((key) => taken.has(key))) {
      report(`ports[${index}] has the name, or the protocol and number, of an earlier port. The port is skipped.`)
      continue
    }
    for (const key of keys) taken.add(key)
    ports.push(port)
  }
  return ports
}

function portIn(given: StatePort, where: string, report: Report): localv1.PortMapping | undefined {
  const { port } = given
  if (!isPort(port)) {
    report(`${where}.port is ${shown(port)}; a port is 1 to 65535. The port is skipped.`)
    return undefined
  }
  const protocol = protocolIn(given.protocol)
  if (protocol === undefined) {
    report(
      `${where}.protocol is ${shown(given.protocol)}; 1 (TCP), 2 (UDP) or 3 (SCTP) was expected. The port is skipped.`,
    )
    return undefined
  }
  return create(localv1.PortMappingSchema, {
    name: given.name ?? '',
    protocol,
    port,
    nodePort: portOrNone(given.nodeport, `${where}.nodeport`, report),
    // If it is missing, it is the port itself. 0 means that only the endpoints' own ports count.
    targetPort:
      given.targetport === undefined && !given.targetportname
        ? port
        : portOrNone(given.targetport, `${where}.targetport`, report),
    targetPortName: given.targetportname ?? '',
  })
}

function protocolIn(given: unknown): localv1.Protocol | undefined {
  if (typeof given !== 'number') return protocolOf(typeof given === 'string' ? given.toUpperCase() : given)
  return given >= localv1.Protocol.TCP && given <= localv1.Protocol.SCTP && Number.isInteger(given) ? given : undefined
}

function portOrNone(given: number | null | undefined, field: string, report: Report): number {
  if (given === undefined || given === null || given === 0) return 0
  if (isPort(given)) return given
  report(`${field} is ${shown(given)}; a port is 1 to 65535. It is ignored.`)
  return 0
}

function filtersIn(
  given: StateService['ipfilters'],
  loadBalancerIps: localv1.IPSet | undefined,
  report: Report,
): localv1.IPFilter[] {
  return (given ?? []).flatMap((filter, index) => {
    const field = `ipfilters[${index}]`
    const targetIps = ipSetIn(filter?.targetips, `${field}.targetips`, report)
    let allValid = true
    const sourceRanges = cidrsIn(filter?.sourceranges, `${field}.sourceranges`, (reason) => {
      allValid = false
      report(reason)
    })
    if (allValid) return create(localv1.IPFilterSchema, { targetIps, sourceRanges })
    // A range that cannot be read was meant to restrict access, and its family is unknown: it allows nobody, in both families.
    const hasTargets = targetIps !== undefined && targetIps.v4.length + targetIps.v6.length > 0
    return filtersByFamily(hasTargets ? targetIps : loadBalancerIps, sourceRanges, new Set(families))
  })
}

function affinityIn(given: StateService['sessionaffinity'], report: Report): localv1.Service['sessionAffinity'] {
  if (!given?.clientip) return { case: undefined }
  return clientIpAffinity(given.clientip.timeoutseconds, 'sessionaffinity.clientip.timeoutseconds', report)
}
