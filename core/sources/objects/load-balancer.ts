import { create } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import { type Fields, fieldsOf, listOf, type Report, shown, textOf, textsOf } from './fields.js'
import { type Family, families, parseCidr, parseIp } from './ip.js'

export interface LoadBalancer {
  loadBalancerIps?: localv1.IPSet
  loadBalancerProxyIps?: localv1.IPSet
}

/**
 * The addresses that the load balancer was given, by ipMode: VIP or unset are captured (checklist 16), Proxy are only told
 * (checklist 47). An ingress with a host name alone has no address to capture.
 */
export function loadBalancerOf(status: Fields, report: Report): LoadBalancer {
  const sets = { vip: newSet(), proxy: newSet() }
  const { ingress } = fieldsOf(status.loadBalancer, report, 'status', 'loadBalancer')
  for (const [index, item] of listOf(ingress, report, 'status', 'loadBalancer', 'ingress').entries()) {
    const where = `status.loadBalancer.ingress[${index}]`
    const fields = fieldsOf(item, report, where)
    const text = textOf(fields.ip, report, where, 'ip')
    if (text === '') continue
    const ip = parseIp(text)
    if (!ip) {
      report(`${where}.ip is ${shown(text)}, which is no IP address. The address is left out.`)
      continue
    }
    const mode = textOf(fields.ipMode, report, where, 'ipMode')
    if (mode === '' || mode === 'VIP') sets.vip[ip.family].add(ip.text)
    else if (mode === 'Proxy') sets.proxy[ip.family].add(ip.text)
    else report(`${where}.ipMode is ${shown(mode)}; VIP or Proxy was expected. The address is left out.`)
  }
  const vip = ipSet(sets.vip)
  const proxy = ipSet(sets.proxy)
  return { ...(vip && { loadBalancerIps: vip }), ...(proxy && { loadBalancerProxyIps: proxy }) }
}

type AddressSets = Record<Family, Set<string>>

const newSet = (): AddressSets => ({ v4: new Set(), v6: new Set() })

function ipSet({ v4, v6 }: AddressSets): localv1.IPSet | undefined {
  if (v4.size + v6.size === 0) return undefined
  return create(localv1.IPSetSchema, { v4: [...v4].sort(), v6: [...v6].sort() })
}

/**
 * Who may use the load-balancer IPs (checklist 45). Families are apart, as in kube-proxy: ranges of one family alone leave the
 * IPs of the other open.
 *
 * Where kube-proxy skips a range that it cannot read, and so opens the door to everybody when no other is left, we do not: whoever
 * wrote a range wanted a restriction. A bad range lets nobody in, and since its family is unknown it restricts both.
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
        `spec.loadBalancerSourceRanges has ${shown(text)}, which is no network (10.0.0.0/8, fd00::/8). The range lets nobody in.`,
      )
      for (const family of families) restricted.add(family)
    }
  }
  return filtersByFamily(targets, [...ranges].sort(), restricted)
}

/**
 * A filter for each of the restricted families: its own targets and its own ranges, of which there may be none. Were they one
 * filter, a family without a range would be open.
 */
export function filtersByFamily(
  targets: localv1.IPSet | undefined,
  ranges: readonly string[],
  restricted: ReadonlySet<Family>,
): localv1.IPFilter[] {
  return families.flatMap((family) => {
    const own = targets?.[family] ?? []
    // Without an address (none yet, or none of this family) there is nothing to guard; an empty target would mean all.
    if (!restricted.has(family) || own.length === 0) return []
    return create(localv1.IPFilterSchema, {
      targetIps: { [family]: [...own] },
      sourceRanges: ranges.filter((range) => parseCidr(range)?.family === family),
    })
  })
}
