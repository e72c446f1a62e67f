import { create } from '@bufbuild/protobuf'
import { localv1, parseCidr, parseIp } from '@kpng/api'
import { type Report, shown } from '../../kubernetes/fields.js'
import type { StateIps } from './state-shape.js'

type Texts = readonly (string | null)[] | null | undefined

/** Addresses in the order of the file, without duplicates. An address in the list of the other family is put where it belongs. */
export function ipsOf(
  given: StateIps | null | undefined,
  field: string,
  report: Report,
): { v4: string[]; v6: string[] } {
  const found = { IPv4: new Set<string>(), IPv6: new Set<string>() }
  for (const text of [...(given?.v4 ?? []), ...(given?.v6 ?? [])]) {
    const ip = parseIp(text ?? '')
    if (ip) found[ip.family].add(ip.text)
    else report(`${field} has ${shown(text)}, which is no IP address. The address is left out.`)
  }
  return { v4: [...found.IPv4], v6: [...found.IPv6] }
}

/** Unset and empty are different to clients that print what they get, so unset stays unset. */
export function ipSetIn(given: StateIps | null | undefined, field: string, report: Report): localv1.IPSet | undefined {
  return given ? create(localv1.IPSetSchema, ipsOf(given, field, report)) : undefined
}

export function cidrsOf(given: Texts, field: string, report: Report): string[] {
  const found = new Set<string>()
  for (const text of given ?? []) {
    const cidr = parseCidr(text ?? '')
    if (cidr) found.add(cidr.text)
    else report(`${field} has ${shown(text)}, which is no network (10.0.0.0/8, fd00::/8). It is left out.`)
  }
  return [...found]
}
