import { create } from '@bufbuild/protobuf'
import { localv1, parseCidr } from '@kpng/api'
import { fieldsOf, type Report, readObject, shown, textsOf } from './fields.js'

/** A ServiceCIDR: ranges that cluster IPs are allocated from (checklist 9). */
export function serviceCidrFromKubernetes(object: unknown, report: Report): localv1.ServiceCIDR | undefined {
  const read = readObject(object, report)
  if (!read) return undefined
  const spec = fieldsOf(read.object.spec, report, 'spec')
  const cidrs = textsOf(spec.cidrs, report, 'spec', 'cidrs').flatMap((text) => {
    const cidr = parseCidr(text)
    if (!cidr) report(`spec.cidrs has ${shown(text)}, which is not a CIDR (10.96.0.0/12, fd00::/108). It is left out.`)
    return cidr ? [cidr.text] : []
  })
  return create(localv1.ServiceCIDRSchema, { name: read.metadata.name, cidrs: [...new Set(cidrs)] })
}
