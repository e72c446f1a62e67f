import { create } from '@bufbuild/protobuf'
import { globalv1, parseCidr, parseIp, zoneLabel } from '@kpng/api'
import { type Fields, fieldsOf, isFields, listOf, type Report, readObject, shown, textOf, textsOf } from './fields.js'
import type { KeptKeys } from './globs.js'

const autoscalerTaint = 'ToBeDeletedByClusterAutoscaler'

/** A Node as kpng serves it (checklist 7, 8). */
export function nodeFromKubernetes(object: unknown, kept: KeptKeys, report: Report): globalv1.Node | undefined {
  const read = readObject(object, report)
  if (!read) return undefined
  const { name, labels, annotations, deleting } = read.metadata
  const spec = fieldsOf(read.object.spec, report, 'spec')
  return create(globalv1.NodeSchema, {
    name,
    labels: kept.labels(labels),
    annotations: kept.annotations(annotations),
    topology: { node: name, zone: labels[zoneLabel] ?? '' },
    addresses: addressesOf(read.object, report),
    podCidrs: podCidrsOf(spec, report),
    // Both mean that load balancers should stop sending to this node (checklist 71).
    deleting: deleting || isToBeDeleted(spec, report),
  })
}

/** InternalIPs first, then ExternalIPs, each in the order of the object: the first of a family is the node's primary one. */
function addressesOf(object: Fields, report: Report): string[] {
  const status = fieldsOf(object.status, report, 'status')
  const found: Record<string, string[]> = { InternalIP: [], ExternalIP: [] }
  for (const [index, item] of listOf(status.addresses, report, 'status', 'addresses').entries()) {
    const fields = fieldsOf(item, report, 'status', 'addresses', index)
    const list = typeof fields.type === 'string' && Object.hasOwn(found, fields.type) ? found[fields.type] : undefined
    if (!list) continue
    const text = textOf(fields.address, report, 'status', 'addresses', index, 'address')
    const ip = parseIp(text)
    if (ip) list.push(ip.text)
    else report(`status.addresses[${index}].address is ${shown(text)}, which is not an IP address. It is left out.`)
  }
  return [...new Set([...(found.InternalIP ?? []), ...(found.ExternalIP ?? [])])]
}

function podCidrsOf(spec: Fields, report: Report): string[] {
  const listed = textsOf(spec.podCIDRs, report, 'spec', 'podCIDRs')
  const single = textOf(spec.podCIDR, report, 'spec', 'podCIDR')
  const given = listed.length > 0 ? listed : single === '' ? [] : [single]
  const cidrs = given.flatMap((text) => {
    const cidr = parseCidr(text)
    if (!cidr) report(`spec.podCIDRs has ${shown(text)}, which is not a CIDR (10.0.0.0/8, fd00::/8). It is left out.`)
    return cidr ? [cidr.text] : []
  })
  return [...new Set(cidrs)]
}

const isToBeDeleted = (spec: Fields, report: Report): boolean =>
  listOf(spec.taints, report, 'spec', 'taints').some((taint) => isFields(taint) && taint.key === autoscalerTaint)
