import { parseIp } from '@kpng/api'
import type { Portal } from '../portal.js'

/** Where clients sent UDP packets to, before any translation. */
export interface UdpDestination {
  readonly ip: string
  readonly port: number
}

/** The destinations in what `conntrack -L -p udp` prints, each once. In a line the client's side comes first, then the answer's. */
export function udpDestinations(listed: string): UdpDestination[] {
  const found = new Map<string, UdpDestination>()
  for (const [, address = '', port = ''] of listed.matchAll(/^udp .*?\bdst=(\S+) .*?\bdport=(\d+)/gm)) {
    const ip = parseIp(address)?.text
    if (ip !== undefined) found.set(`${ip}|${port}`, { ip, port: Number(port) })
  }
  return [...found.values()]
}

/** Those that are a portal's address. A node port may be any address of the node, and which those were is not known any more. */
export function toPortals(destinations: readonly UdpDestination[], portals: readonly Portal[]): UdpDestination[] {
  const wanted = new Set(portals.map(({ address, port }) => `${address}|${port}`))
  return destinations.filter(({ ip, port }) => wanted.has(`${ip}|${port}`) || wanted.has(`|${port}`))
}
