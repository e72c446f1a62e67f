import { readFile } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { familyOf, ipOfBytes, KpngError, messageOf, parseIp } from '@kpng/api'
import type { Protocol } from '@kpng/client'
import type { KernelDestination } from './ipvs-messages.js'
import { serverKey } from './virtual-servers.js'

// The destinations of all virtual servers. Netlink lists those of one virtual server at a time, which takes ten times as long for all of them.

/** The event loop gets a turn after this many lines. */
const linesAtOnce = 1000

/** By `serverKey`. A virtual server without destinations is left out. */
export async function allDestinations(): Promise<Map<string, KernelDestination[]>> {
  const text = await readFile('/proc/net/ip_vs', 'utf8').catch((error) => {
    throw new KpngError('unavailable', `The virtual servers cannot be listed: ${messageOf(error)}. Is /proc mounted?`)
  })
  return await destinationsIn(text)
}

/** Reads the text of /proc/net/ip_vs. */
export async function destinationsIn(text: string): Promise<Map<string, KernelDestination[]>> {
  const found = new Map<string, KernelDestination[]>()
  let server: Listed | undefined
  let read = 0
  for (const line of text.split('\n')) {
    if (++read % linesAtOnce === 0) await setImmediate()
    const destination = destinationIn(line)
    if (!destination) {
      server = serverIn(line)
    } else if (server) {
      const key = keyOf(server, destination)
      const known = found.get(key)
      if (known) known.push(destination)
      else found.set(key, [destination])
    }
  }
  return found
}

/** A virtual server as it is listed. One that is found by a mark is listed without its family, which is that of its destinations. */
type Listed = { readonly key: string } | { readonly mark: number }

const keyOf = (server: Listed, { ip }: KernelDestination): string =>
  'key' in server
    ? server.key
    : serverKey({ family: familyOf(ip), protocol: 'tcp', address: '', port: 0, mark: server.mark })

/** `TCP  0A600001:0050 rr`, `UDP  [fd00:…]:0035 rr persistent …` or `FWM  4B000001 rr` */
function serverIn(line: string): Listed | undefined {
  const [, protocol = '', address = '', port] = /^(TCP|UDP|SCTP|FWM) +([^ ]+?)(?::([0-9A-F]{4}))? /.exec(line) ?? []
  if (protocol === 'FWM') return { mark: Number.parseInt(address, 16) }
  if (port === undefined) return undefined
  const ip = addressOf(address)
  const where = { family: familyOf(ip), address: ip, protocol: protocol.toLowerCase() as Protocol, mark: 0 }
  return { key: serverKey({ ...where, port: Number.parseInt(port, 16) }) }
}

/** `  -> 0AF40101:1F90      Masq    1      0          0` */
function destinationIn(line: string): KernelDestination | undefined {
  const [, address, port = '', ...numbers] = /^ {2}-> (\S+):([0-9A-F]{4}) +\S+ +(\d+) +(\d+) +(\d+)/.exec(line) ?? []
  if (address === undefined) return undefined
  const [weight = 0, active = 0, inactive = 0] = numbers.map(Number)
  return { ip: addressOf(address), port: Number.parseInt(port, 16), weight, active, inactive }
}

/** Of an address in a file of IPVS below /proc/net: `0A600001`, or an IPv6 address with all its digits, perhaps in brackets. */
export const addressOf = (text: string): string =>
  /^[0-9A-F]{8}$/.test(text) ? ipOfBytes(Buffer.from(text, 'hex')) : (parseIp(text.replace(/[[\]]/g, ''))?.text ?? text)
