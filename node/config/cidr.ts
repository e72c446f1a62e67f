import { BlockList, isIP } from 'node:net'

/** As Kubernetes names them, and as kube-proxy's metrics label them. */
export type IPFamily = 'IPv4' | 'IPv6'

export const ipFamilies: readonly IPFamily[] = ['IPv4', 'IPv6']

export const familyOf = (address: string): IPFamily => (address.includes(':') ? 'IPv6' : 'IPv4')

export interface Cidr {
  readonly address: string
  readonly prefix: number
  readonly family: IPFamily
}

/** Reads `address/length` strictly: no octal, no zone, nothing around it. Undefined when it is none. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = '', length, ...rest] = text.split('/')
  const version = address.includes('%') ? 0 : isIP(address)
  if (version === 0 || length === undefined || rest.length > 0 || !/^\d{1,3}$/.test(length)) return undefined
  const prefix = Number(length)
  if (prefix > (version === 4 ? 32 : 128)) return undefined
  return { address, prefix, family: version === 4 ? 'IPv4' : 'IPv6' }
}

/** Which addresses are in any of the ranges. */
export function inRanges(cidrs: readonly Cidr[]): (address: string) => boolean {
  const ranges = new BlockList()
  for (const { address, prefix, family } of cidrs) ranges.addSubnet(address, prefix, familyForNet(family))
  return (address) => ranges.check(address, familyForNet(familyOf(address)))
}

const familyForNet = (family: IPFamily) => (family === 'IPv4' ? 'ipv4' : 'ipv6')
