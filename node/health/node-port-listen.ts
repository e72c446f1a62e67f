import { addressBits, CidrSet, type Family, families, familyOf, parseCidr } from '@kpng/api'

export interface ListenAddress {
  readonly host: string
  readonly family: Family
}

export interface NodeAddresses {
  /** `nodePortAddresses`: CIDRs and the keywords `primary`, `localhost` and `all`. */
  readonly nodePortAddresses: readonly string[]
  /** The node's own addresses, the primary one of each family first. */
  readonly nodeIps: readonly string[]
  /** What the machine's interfaces have. */
  readonly interfaceAddresses: readonly string[]
}

const wildcards = { IPv4: '0.0.0.0', IPv6: '::' } as const

/**
 * Where health-check node ports are opened, by kube-proxy's rules: on the interfaces' addresses that nodePortAddresses has in its
 * ranges; on all of a family where it has no range of that family.
 */
export function listenAddresses({ nodePortAddresses, nodeIps, interfaceAddresses }: NodeAddresses): ListenAddress[] {
  const cidrs = nodePortAddresses.flatMap((entry) => rangesOf(entry, nodeIps)).flatMap((text) => parseCidr(text) ?? [])
  return families.flatMap((family) => {
    const ranges = cidrs.filter((cidr) => cidr.family === family)
    if (ranges.length === 0 || ranges.some(({ bits }) => bits === 0)) return [{ host: wildcards[family], family }]
    const set = new CidrSet(ranges)
    const hosts = interfaceAddresses.filter((address) => set.has(address))
    return [...new Set(hosts)].map((host) => ({ host, family }))
  })
}

function rangesOf(entry: string, nodeIps: readonly string[]): readonly string[] {
  if (entry === 'all') return ['0.0.0.0/0', '::/0']
  if (entry === 'localhost') return ['127.0.0.0/8', '::1/128']
  if (entry !== 'primary') return [entry]
  return families.flatMap((family) => {
    const ip = nodeIps.find((address) => familyOf(address) === family)
    return ip === undefined ? [] : [`${ip}/${addressBits[family]}`]
  })
}
