import { KpngError } from '@kpng/api'

/**
 * The addresses in what people write: one, several with commas, or Go kpng's `multi:///a,b`. Returned as gRPC targets.
 */
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
  if (/^unix:/.test(text)) return text
  const address = text.replace(/^tcp:\/\//, '')
  const port = /^(?:\[[0-9a-fA-F:.%]+\]|[^:[\]/\s]*):(\d+)$/.exec(address)?.[1]
  if (port === undefined || Number(port) < 1 || Number(port) > 65535) {
    throw new KpngError('usage', `"${text}" is no API address. Write host:port, [IPv6]:port or unix:///path.`)
  }
  return address.startsWith(':') ? `127.0.0.1${address}` : address
}
