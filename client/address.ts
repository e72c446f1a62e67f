import { isIPv6 } from 'node:net'
import { hostPort, KpngError } from '@kpng/api'

/** Where the kpng API is served. No host: every address of the machine for a server, loopback for a client. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string | undefined; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

/** The size of the kernel's sockaddr_un. The kernel would cut a longer path silently. */
const longestSocketPath = process.platform === 'linux' ? 107 : 103

/** Reads `host:port`, `[IPv6]:port`, `:port` and `unix:///path`. `tcp://` in front of a host is optional. */
export function parseAddress(text: string): Address {
  if (text.startsWith('unix:')) return unixAddress(text)
  const [, bracketed, plain, digits] = /^(?:tcp:\/\/)?(?:\[([^\]]*)\]|([^:[\]/\s]*)):(\d{1,5})$/.exec(text) ?? []
  if (digits === undefined) throw wrong(text, 'write host:port, [IPv6]:port or unix:///path')
  if (bracketed !== undefined && !isIPv6(bracketed)) throw wrong(text, `${bracketed} is not an IPv6 address`)
  const port = Number(digits)
  if (port > 65_535) throw wrong(text, 'the highest port is 65535')
  return { kind: 'tcp', host: (bracketed ?? plain) || undefined, port }
}

function unixAddress(text: string): Address {
  const path = text.replace(/^unix:(?:\/\/)?/, '')
  if (!path.startsWith('/') || path.endsWith('/')) {
    throw wrong(text, 'give the full path of a socket file, for example unix:///run/kpng/kpng.sock')
  }
  if (Buffer.byteLength(path) > longestSocketPath) {
    throw wrong(text, `the path of a socket has at most ${longestSocketPath} bytes: choose a shorter one`)
  }
  return { kind: 'unix', path }
}

const wrong = (text: string, why: string) =>
  new KpngError('usage', `The address ${JSON.stringify(text)} cannot be used: ${why}.`)

/** A text that `parseAddress` reads, with `tcp://` or `unix://` in front. */
export function formatAddress(address: Address): string {
  if (address.kind === 'unix') return `unix://${address.path}`
  return `tcp://${hostPort(address.host ?? '', address.port)}`
}

/** Reads one address, several with commas, or Go kpng's `multi:///a,b`. Returns gRPC targets. */
export function parseAddresses(api: string | readonly string[]): string[] {
  const texts = typeof api === 'string' ? api.replace(/^multi:\/\/\//, '').split(',') : api
  const targets = texts
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map(target)
  if (targets.length === 0) throw new KpngError('usage', 'No API address was given. Give one such as 127.0.0.1:12090.')
  return targets
}

function target(text: string): string {
  const address = parseAddress(text)
  if (address.kind === 'unix') return formatAddress(address)
  if (address.port === 0) throw wrong(text, 'a client needs the number of the port')
  return hostPort(address.host ?? '127.0.0.1', address.port)
}
