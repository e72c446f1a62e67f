import { BlockList, isIP, SocketAddress } from 'node:net'

export type Family = 'v4' | 'v6'

export interface IpAddress {
  /** In canonical form, so that equal addresses are equal strings. */
  readonly ip: string
  readonly family: Family
}

const nodeFamily = { v4: 'ipv4', v6: 'ipv6' } as const
const bitsOf = { v4: 32, v6: 128 } as const

/** A plain IP address, or undefined. Zones (`fe80::1%eth0`) name an interface of one machine and are not accepted. */
export function parseIp(text: string): IpAddress | undefined {
  const version = text.includes('%') ? 0 : isIP(text)
  if (version === 0) return undefined
  const family = version === 4 ? 'v4' : 'v6'
  return { ip: new SocketAddress({ address: text, family: nodeFamily[family] }).address, family }
}

export interface Cidr extends IpAddress {
  readonly prefix: number
}

/** A range such as `10.0.0.0/8`; spaces around it are allowed, as Kubernetes allows them in source ranges. */
export function parseCidr(text: string): Cidr | undefined {
  const [base = '', length, more] = text.trim().split('/')
  const address = parseIp(base)
  if (!address || length === undefined || more !== undefined || !/^\d{1,3}$/.test(length)) return undefined
  const prefix = Number(length)
  return prefix <= bitsOf[address.family] ? { ...address, prefix } : undefined
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
export const hostPort = (ip: string, port: number): string => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`)

/** A set of ranges that addresses of either family can be looked up in. */
export class Ranges {
  readonly #list = new BlockList()
  /** The ranges that are not inside another one, in canonical form. */
  readonly cidrs: readonly string[]

  constructor(cidrs: readonly Cidr[]) {
    const kept: string[] = []
    for (const cidr of [...cidrs].sort((a, b) => a.prefix - b.prefix)) {
      // Two CIDRs are apart or one holds the other: looking up the first address of the longer one decides it.
      if (this.has(cidr.ip, cidr.family)) continue
      this.#list.addSubnet(cidr.ip, cidr.prefix, nodeFamily[cidr.family])
      kept.push(`${cidr.ip}/${cidr.prefix}`)
    }
    this.cidrs = kept.sort()
  }

  has(ip: string, family: Family): boolean {
    return this.#list.check(ip, nodeFamily[family])
  }
}

/** Ranges from texts; what cannot be read is handed to `onBad` and left out. */
export function parseRanges(texts: readonly string[], onBad: (text: string) => void = () => {}): Ranges {
  return new Ranges(
    texts.flatMap((text) => {
      const cidr = parseCidr(text)
      if (!cidr) onBad(text)
      return cidr ? [cidr] : []
    }),
  )
}
