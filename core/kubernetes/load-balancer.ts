import { create } from '@bufbuild/protobuf'
import { type Family, families, ipSetOf, ipsOf, localv1, parseCidr, parseIp } from '@kpng/api'
import { type Fields, fieldsOf, listOf, type Report, shown, textOf, textsOf } from './fields.js'

export interface LoadBalancer {
  loadBalancerIps?: localv1.IPSet
  loadBalancerProxyIps?: localv1.IPSet
}

/**
 * The addresses of the load balancer, by ipMode. Addresses with VIP or without a mode are served (checklist 16); those with
 * Proxy are only passed on (checklist 47). An ingress with a host name alone has no address to serve.
 */
export function loadBalancerOf(status: Fields, report: Report): LoadBalancer {
  const vip: string[] = []
  const proxy: string[] = []
  const { ingress } = fieldsOf(status.loadBalancer, report, 'status', 'loadBalancer')
  for (const [index, item] of listOf(ingress, report, 'status', 'loadBalancer', 'ingress').entries()) {
    const where = `status.loadBalancer.ingress[${index}]`
    const fields = fieldsOf(item, report, where)
    const text = textOf(fields.ip, report, where, 'ip')
    if (text === '') continue
    const mode = textOf(fields.ipMode, report, where, 'ipMode')
    if (!parseIp(text)) report(`${where}.ip is ${shown(text)}, which is not an IP address. The address is left out.`)
    else if (mode === '' || mode === 'VIP') vip.push(text)
    else if (mode === 'Proxy') proxy.push(text)
    else report(`${where}.ipMode is ${shown(mode)}; VIP or Proxy was expected. The address is left out.`)
  }
  return {
    ...(vip.length > 0 && { loadBalancerIps: create(localv1.IPSetSchema, ipSetOf(vip)) }),
    ...(proxy.length > 0 && { loadBalancerProxyIps: create(localv1.IPSetSchema, ipSetOf(proxy)) }),
  }
}

/**
 * Who may use the load-balancer IPs (checklist 45). Each family is decided on its own, as in kube-proxy: if all ranges are of
 * one family, the IPs of the other family stay open.
 *
 * kube-proxy skips a range that it cannot read, and so lets everybody in if no other range is left. kpng does not: the author
 * of a range wanted a restriction. A bad range lets nobody in, and because its family is unknown it restricts both.
 */
export function sourceRangeFilters(
  spec: Fields,
  targets: localv1.IPSet | undefined,
  report: Report,
): localv1.IPFilter[] {
  const texts = textsOf(spec.loadBalancerSourceRanges, report, 'spec', 'loadBalancerSourceRanges')
  const ranges = new Set<string>()
  const restricted = new Set<Family>()
  for (const text of texts.filter((range) => range.trim() !== '')) {
    const cidr = parseCidr(text)
    if (cidr) {
      ranges.add(cidr.text)
      restricted.add(cidr.family)
    } else {
      report(
        `spec.loadBalancerSourceRanges has ${shown(text)}, which is not a CIDR (10.0.0.0/8, fd00::/8). The range lets nobody in.`,
      )
      for (const family of families) restricted.add(family)
    }
  }
  return filtersByFamily(targets, [...ranges].sort(), restricted)
}

/**
 * One filter per restricted family, with the targets and ranges of that family; there may be no range. In one common filter, a
 * family without a range would be open.
 */
export function filtersByFamily(
  targets: localv1.IPSet | undefined,
  ranges: readonly string[],
  restricted: ReadonlySet<Family>,
): localv1.IPFilter[] {
  return families.flatMap((family) => {
    const own = ipsOf(targets, family)
    // Without an address of this family (or none yet) there is nothing to protect; an empty target would mean all addresses.
    if (!restricted.has(family) || own.length === 0) return []
    return create(localv1.IPFilterSchema, {
      targetIps: family === 'IPv4' ? { v4: [...own] } : { v6: [...own] },
      sourceRanges: ranges.filter((range) => parseCidr(range)?.family === family),
    })
  })
}
