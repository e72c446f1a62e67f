import { addressBits, type Cidr, type Family, hostPort } from '@kpng/api'
import type { Frontend, FrontendEndpoint } from '@kpng/dataplane'

// Parts of rules as text, in the order in which iptables-save prints them. A rule here has no `-A <chain>`.

/** The tables that kpng writes to. */
export const tables = ['nat', 'filter'] as const
export type Table = (typeof tables)[number]

/** The rules of chains, by the name of the chain. */
export type Chains = ReadonlyMap<string, readonly string[]>

/** xt_comment takes 255 bytes. */
const maxComment = 255

/** Names in state files may hold anything, and nothing of it may end the quotes or the line. */
export const comment = (text: string): string =>
  `-m comment --comment "${text.replace(/[^\x20-\x7e]|["\\]/g, '?').slice(0, maxComment)}"`

export const ruleOf = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join(' ')

/** Empty for a range that holds everything: iptables-save does not print it. */
export const fromRange = ({ text, bits }: Cidr): string => (bits === 0 ? '' : `-s ${text}`)

export const hostRange = (ip: string, family: Family): string => `${ip}/${addressBits[family]}`

/** Traffic of this node itself. */
export const fromNode = '-m addrtype --src-type LOCAL'

export const toNode = '-m addrtype --dst-type LOCAL'

/** What a client sends to a frontend; an empty text is no comment. A node port has no address: the caller matches the addresses where node ports are open. */
export function toFrontend({ family, address, protocol, port }: Frontend, commentText: string): string {
  return ruleOf(
    address === '' ? '' : `-d ${hostRange(address, family)}`,
    protocol === 'any' ? '' : `-p ${protocol}`,
    commentText === '' ? '' : comment(commentText),
    protocol === 'any' ? '' : `-m ${protocol} --dport ${port}`,
  )
}

/** What DNAT is told. Without a port, the client's is kept. */
export const destinationOf = ({ ip, port }: FrontendEndpoint): string => (port === 0 ? ip : hostPort(ip, port))

const draws = ['', '']

/** Every endpoint is drawn with the same probability: 1/3 of all, 1/2 of the rest, what is left. */
export const drawOneOf = (left: number): string => {
  // Writing a number takes long, and there are tens of thousands of these rules. The kernel has 31 bits for it; iptables-save prints it like this.
  draws[left] ??= `-m statistic --mode random --probability ${(Math.round(2 ** 31 / left) / 2 ** 31).toFixed(11)}`
  return draws[left]
}
