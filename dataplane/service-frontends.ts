import {
  type Cidr,
  CidrSet,
  defaultAffinitySeconds,
  type Family,
  families,
  ipsOf,
  isPort,
  type localv1,
  parseCidr,
  parseIp,
  unsafeKindOf,
} from '@kpng/api'
import { type FrontendAddress, type FrontendKind, protocolOf, type ServiceEndpoints } from '@kpng/client'
import { type Frontend, frontendId } from './frontend.js'
import { isInside, type NodeFacts } from './node.js'
import { type PortEndpoints, portEndpoints, type Report, type ServiceProblem } from './port-endpoints.js'
import type { DataplaneSettings } from './settings.js'

/** What a Service asks for on this node. Another Service may own some of its addresses: see claims.ts. */
export interface ServiceFrontends {
  /** Each address, protocol and port once. */
  readonly frontends: readonly Frontend[]
  /** What cannot be served. */
  readonly problems: readonly ServiceProblem[]
}

/** @param path `namespace/name` */
export function serviceFrontends(
  path: string,
  item: ServiceEndpoints,
  node: NodeFacts,
  settings: DataplaneSettings,
): ServiceFrontends {
  // A problem may be met at each port.
  const problems = new Map<string, ServiceProblem>()
  const report: Report = (kind, sentence) => problems.set(sentence, { kind, sentence })
  const builder = new Builder(path, item, node, settings, report)
  if (item.service.mapIp) builder.addWholeAddresses()
  else for (const port of item.service.ports) builder.addPort(port)
  return { frontends: [...builder.frontends.values()], problems: [...problems.values()] }
}

/** Collects the frontends of one Service. If two have the same id (two ports with one number, an IP listed twice), the first counts. */
class Builder {
  readonly frontends = new Map<string, Frontend>()
  readonly #path: string
  readonly #item: ServiceEndpoints
  readonly #node: NodeFacts
  readonly #settings: DataplaneSettings
  readonly #report: Report

  constructor(path: string, item: ServiceEndpoints, node: NodeFacts, settings: DataplaneSettings, report: Report) {
    this.#path = path
    this.#item = item
    this.#node = node
    this.#settings = settings
    this.#report = report
  }

  addWholeAddresses(): void {
    for (const family of this.#node.families) {
      const addresses = this.#addresses(family)
      if (addresses.length === 0) continue
      const endpoints = this.#endpoints(undefined, family)
      for (const address of addresses) {
        this.#put({ ...address, family, protocol: 'any', port: 0 }, endpoints, '')
      }
    }
  }

  addPort(port: localv1.PortMapping): void {
    const protocol = protocolOf(port)
    if (!protocol || !isPort(port.port)) {
      this.#report('unusable-port', `port "${port.name}" has no usable protocol or number`)
      return
    }
    for (const family of this.#node.families) {
      const addresses = this.#addresses(family)
      const hasNodePort = isPort(port.nodePort) && hasFamily(this.#item.service, family)
      if (addresses.length === 0 && !hasNodePort) continue
      const endpoints = this.#endpoints(port, family)
      for (const address of addresses) {
        this.#put({ ...address, family, protocol, port: port.port }, endpoints, port.name)
      }
      if (!hasNodePort) continue
      this.#put({ kind: 'nodePort', family, address: '', protocol, port: port.nodePort }, endpoints, port.name)
    }
  }

  #endpoints(port: localv1.PortMapping | undefined, family: Family): PortEndpoints {
    const { allowLoopback } = this.#settings
    return portEndpoints(this.#item, port, family, { node: this.#node, allowLoopback, report: this.#report })
  }

  #put(where: FrontendAddress, endpoints: PortEndpoints, portName: string): void {
    const id = frontendId(where)
    if (this.frontends.has(id)) return
    const frontend = this.#frontend(id, where, endpoints, portName)
    // Ranges that hold everybody need nobody to enforce them.
    if (frontend.allowedSources?.every(({ bits }) => bits > 0) && !this.#settings.sourceRanges) {
      const why = 'this data plane cannot restrict clients, and it has loadBalancerSourceRanges'
      this.#report('unenforced-source-ranges', `address ${where.address} is not served: ${why}`)
    } else this.frontends.set(id, frontend)
  }

  #frontend(id: string, where: FrontendAddress, endpoints: PortEndpoints, portName: string): Frontend {
    const { service } = this.#item
    const isClusterIp = where.kind === 'clusterIP'
    return {
      id,
      kind: where.kind,
      family: where.family,
      address: where.address,
      protocol: where.protocol,
      port: where.port,
      service: this.#path,
      portName,
      inside: isClusterIp ? endpoints.internal : endpoints.cluster,
      outside: isClusterIp ? endpoints.internal : endpoints.external,
      draining: endpoints.draining,
      allowedSources: where.kind === 'nodePort' || isClusterIp ? undefined : this.#allowedSources(where),
      sessionAffinitySeconds: sessionAffinitySeconds(service),
      masquerade: this.#masquerade(isClusterIp),
    }
  }

  #masquerade(isClusterIp: boolean): Frontend['masquerade'] {
    if (isClusterIp) return this.#settings.masqueradeAll ? 'always' : 'notPods'
    return this.#item.service.externalTrafficToLocal ? 'node' : 'always'
  }

  /** Load-balancer IPs come before external IPs: the source ranges must apply to an address that is both. */
  #addresses(family: Family): Pick<FrontendAddress, 'kind' | 'address'>[] {
    const { ips } = this.#item.service
    const found: Pick<FrontendAddress, 'kind' | 'address'>[] = []
    if (!hasFamily(this.#item.service, family)) {
      // As in kube-proxy. Endpoints of this family are not the Service's, so its clients would be refused.
      for (const address of [...ipsOf(ips?.loadBalancerIps, family), ...ipsOf(ips?.externalIps, family)])
        this.#report(
          'other-family-address',
          `address ${address} is not served: the Service has no ${family} cluster IP`,
        )
      return found
    }
    this.#addAddresses(found, 'clusterIP', ipsOf(ips?.clusterIps, family), family)
    this.#addAddresses(found, 'loadBalancerIP', ipsOf(ips?.loadBalancerIps, family), family)
    if (this.#settings.externalIps) this.#addAddresses(found, 'externalIP', ipsOf(ips?.externalIps, family), family)
    return found
  }

  #addAddresses(
    found: Pick<FrontendAddress, 'kind' | 'address'>[],
    kind: FrontendKind,
    texts: readonly string[],
    family: Family,
  ): void {
    for (const text of texts) {
      const ip = parseIp(text)
      if (ip?.family !== family) this.#report('unusable-address', `"${text}" is not an ${family} address`)
      else if (found.some(({ address }) => address === ip.text)) continue
      else if (kind === 'clusterIP' || this.#mayServe(ip.text)) found.push({ kind, address: ip.text })
    }
  }

  /** The API server allocates cluster IPs. Other addresses can be anything that a user wrote into the Service or its status. */
  #mayServe(ip: string): boolean {
    const unsafe = unsafeKindOf(ip)
    if (unsafe && !(unsafe === 'loopback' && this.#settings.allowLoopback)) {
      this.#report(
        `${unsafe}-address`,
        `address ${ip} is not served because it is ${unsafe === 'unspecified' ? 'an' : 'a'} ${unsafe} address`,
      )
      return false
    }
    if (this.#settings.protectNodeAndPodIps && isInside(this.#node, ip)) {
      this.#report('protected-address', `address ${ip} is not served because it belongs to this node or to a pod`)
      return false
    }
    return true
  }

  /**
   * The sources that the filters for an address allow; undefined if no filter restricts its family. As in kube-proxy, CIDRs of
   * only the other family do not restrict it. A filter without a CIDR restricts it, and so does an unreadable CIDR, because its author
   * wanted a restriction.
   */
  #allowedSources({ kind, family, address }: FrontendAddress): readonly Cidr[] | undefined {
    const cidrs: Cidr[] = []
    let isRestricted = false
    for (const { targetIps, sourceRanges } of this.#item.service.ipFilters) {
      const targets = families.flatMap((each) => ipsOf(targetIps, each))
      const applies =
        targets.length === 0 ? kind === 'loadBalancerIP' : targets.some((text) => parseIp(text)?.text === address)
      if (!applies) continue
      if (sourceRanges.length === 0) isRestricted = true
      for (const text of sourceRanges) {
        const cidr = parseCidr(text)
        if (!cidr) this.#report('unusable-source-range', `source range "${text}" is not a CIDR and allows nobody`)
        if (!cidr || cidr.family === family) isRestricted = true
        if (cidr?.family === family) cidrs.push(cidr)
      }
    }
    if (!isRestricted) return undefined
    const allowed = new CidrSet(cidrs)
    // If the address is also on an interface of the node, the node's own packets to it have it as their source.
    if (!this.#node.addresses.some((own) => allowed.has(own))) return allowed.cidrs
    const own = parseCidr(`${address}/${family === 'IPv4' ? 32 : 128}`)
    return new CidrSet(own ? [...cidrs, own] : cidrs).cidrs
  }
}

/** A Service is served in the families of its cluster IPs; without cluster IPs, in all families. */
function hasFamily({ ips }: localv1.Service, family: Family): boolean {
  const has = (each: Family) => ipsOf(ips?.clusterIps, each).length > 0
  return has(family) || !families.some(has)
}

function sessionAffinitySeconds({ sessionAffinity }: localv1.Service): number | undefined {
  if (sessionAffinity.case !== 'clientIp') return undefined
  return sessionAffinity.value.timeoutSeconds > 0 ? sessionAffinity.value.timeoutSeconds : defaultAffinitySeconds
}
