import { isIPv6 } from 'node:net'
import { KpngError } from '@kpng/api'

/** Where a server listens. No host: every address of the machine. */
export type Address =
  | { readonly kind: 'tcp'; readonly host: string | undefined; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

/** What fits into the kernel's sockaddr_un; a longer path would be cut off without a word. */
const longestSocketPath = process.platform === 'linux' ? 107 : 103

/** Reads `tcp://host:port`, `tcp://:port`, `tcp://[::1]:port` and `unix:///path`. */
export function parseAddress(text: string): Address {
  if (text.startsWith('unix://')) return unixAddress(text)
  if (!text.startsWith('tcp://')) {
    const meant = /^[^/]*:\d+$/.test(text) ? `tcp://${text}` : 'tcp://127.0.0.1:12090'
    throw wrong(text, `it must start with tcp:// or unix://, for example ${meant}`)
  }
  const [, bracketed, plain, digits] = /^tcp:\/\/(?:\[([^\]]*)\]|([^:[\]/]*)):(\d{1,5})$/.exec(text) ?? []
  if (digits === undefined) throw wrong(text, 'write it as tcp://host:port, an IPv6 address as tcp://[::1]:port')
  if (bracketed !== undefined && !isIPv6(bracketed)) throw wrong(text, `${bracketed} is no IPv6 address`)
  const port = Number(digits)
  if (port > 65_535) throw wrong(text, 'a port is at most 65535')
  return { kind: 'tcp', host: (bracketed ?? plain) || undefined, port }
}

function unixAddress(text: string): Address {
  const path = text.slice('unix://'.length)
  if (!path.startsWith('/') || path.endsWith('/')) {
    throw wrong(text, 'give the full path of a socket file, for example unix:///run/kpng/kpng.sock')
  }
  if (Buffer.byteLength(path) > longestSocketPath) {
    throw wrong(text, `a socket's path may have ${longestSocketPath} bytes at most: choose a shorter one`)
  }
  return { kind: 'unix', path }
}

const wrong = (text: string, why: string) =>
  new KpngError('usage', `The address ${JSON.stringify(text)} cannot be used: ${why}.`)

/** The text that `parseAddress` reads. */
export function formatAddress(address: Address): string {
  if (address.kind === 'unix') return `unix://${address.path}`
  return `tcp://${hostAndPort(address.host ?? '', address.port)}`
}

/** `10.0.0.1:80`, `[::1]:80`. */
export function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`
}
