import { type Log, localv1 } from '@kpng/api'
import { type Cidr, type Family, hostPort, type IpAddress, parseCidr, parseIp, Ranges } from './address.js'

export type Protocol = 'tcp' | 'udp'
export type PortalKind = 'cluster-ip' | 'external-ip' | 'load-balancer-ip' | 'node-port'

/** One address at which clients reach one port of a service. */
export interface Portal {
  /** `namespace/name:port`, or `namespace/name` when the port has no name. */
  readonly servicePort: string
  readonly kind: PortalKind
  readonly family: Family
  readonly protocol: Protocol
  /** Empty for a node port: every address of this node. */
  readonly ip: string
  readonly port: number
  /** Only these clients may connect. Undefined: all. */
  readonly sourceRanges: Ranges | undefined
}

export const servicePortName = (service: localv1.Service, port: localv1.PortMapping): string =>
  `${service.namespace}/${service.name}${port.name === '' ? '' : `:${port.name}`}`

/** `10.96.0.1:80/tcp`; two portals with the same one cannot both be open. */
export const portalAddress = ({ ip, family, port, protocol }: Portal): string =>
  ip === '' ? `${family === 'v4' ? '0.0.0.0' : '[::]'}:${port}/${protocol}` : `${hostPort(ip, port)}/${protocol}`

/** A portal stays the same one as long as its name does. Ranges and endpoints may change meanwhile. */
export const portalName = (portal: Portal): string => `${portal.servicePort}|${portalAddress(portal)}`

const protocols = new Map<localv1.Protocol, Protocol>([
  [localv1.Protocol.TCP, 'tcp'],
  [localv1.Protocol.UDP, 'udp'],
])

const isPort = (port: number): boolean => Number.isInteger(port) && port > 0 && port < 65_536

/** The portals of one port of a service. What cannot be proxied is logged and left out; the rest goes on. */
export function portalsOfPort(service: localv1.Service, port: localv1.PortMapping, log: Log): Portal[] {
  const servicePort = servicePortName(service, port)
  const protocol = protocols.get(port.protocol)
  if (!protocol) {
    const name = localv1.Protocol[port.protocol] ?? port.protocol
    log.detail(2, 'Skipping a service port: user space proxies TCP and UDP only', { servicePort, protocol: name })
    return []
  }
  const portals = new Map<string, Portal>()
  const add = (kind: PortalKind, family: Family, ip: string, number: number) => {
    if (!isPort(number))
      return void log.warn('Skipping a portal: its port is out of range', { servicePort, port: number })
    const sourceRanges = kind === 'node-port' ? undefined : sourceRangesFor(service, kind, { ip, family }, log)
    const portal = { servicePort, kind, family, protocol, ip, port: number, sourceRanges }
    if (!portals.has(portalAddress(portal))) portals.set(portalAddress(portal), portal)
  }
  // Load-balancer IPs come before external ones: an address that is both is guarded by the source ranges.
  const { ips } = service
  for (const [kind, set] of [
    ['cluster-ip', ips?.clusterIps],
    ['load-balancer-ip', ips?.loadBalancerIps],
    ['external-ip', ips?.externalIps],
  ] as const) {
    for (const text of [...(set?.v4 ?? []), ...(set?.v6 ?? [])]) {
      const address = parseIp(text)
      if (address) add(kind, address.family, address.ip, port.port)
      else log.warn('Skipping a service address that is not an IP address', { servicePort, address: text })
    }
  }
  if (port.nodePort !== 0) for (const family of familiesOf(service)) add('node-port', family, '', port.nodePort)
  return [...portals.values()]
}

/** A node port is open in the families that the service has cluster IPs of. */
function familiesOf({ ips }: localv1.Service): Family[] {
  const families: Family[] = []
  if (ips?.clusterIps?.v4.length) families.push('v4')
  if (ips?.clusterIps?.v6.length) families.push('v6')
  return families.length > 0 ? families : ['v4']
}

/**
 * Who may connect, by all filters that are for an address; undefined where none restricts its family. Ranges of the other family
 * only do not, as in kube-proxy. A filter without a range does, and so does a range that cannot be read: whoever wrote it wanted
 * a restriction.
 */
function sourceRangesFor(
  service: localv1.Service,
  kind: PortalKind,
  { ip, family }: IpAddress,
  log: Log,
): Ranges | undefined {
  const cidrs: Cidr[] = []
  let isGuarded = false
  for (const { targetIps, sourceRanges } of service.ipFilters) {
    const targets = [...(targetIps?.v4 ?? []), ...(targetIps?.v6 ?? [])]
    const applies =
      targets.length === 0 ? kind === 'load-balancer-ip' : targets.some((target) => parseIp(target)?.ip === ip)
    if (!applies) continue
    if (sourceRanges.length === 0) isGuarded = true
    for (const range of sourceRanges) {
      const cidr = parseCidr(range)
      if (!cidr) {
        const name = `${service.namespace}/${service.name}`
        log.warn('A source range that is not a CIDR lets nobody in', { service: name, range })
      }
      if (cidr?.family === family) cidrs.push(cidr)
      if (!cidr || cidr.family === family) isGuarded = true
    }
  }
  return isGuarded ? new Ranges(cidrs) : undefined
}
