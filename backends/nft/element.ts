import { endianness } from 'node:os'
import { localv1 } from '@kpng/api'
import type { SetPath } from './names.js'

// Elements as the kernel holds them. Keys and data are byte strings (see address.ts): what is read from the kernel compares
// with what is wanted without parsing, and writing one is a copy. Each field of a concatenation is padded to four bytes.

/** Key → data; the data of a set's element is ''. The data of a verdict map is the name of the chain it goes to. */
export type ElementMap = Map<string, string>

/** What is in the tables, or a part of it. */
export type Elements = Map<SetPath, ElementMap>

export type Protocol = 'tcp' | 'udp' | 'sctp'

export const protocolNumbers: Readonly<Record<Protocol, number>> = { tcp: 6, udp: 17, sctp: 132 }

export const protocols: readonly Protocol[] = ['tcp', 'udp', 'sctp']

export function protocolOf(protocol: localv1.Protocol): Protocol | undefined {
  switch (protocol) {
    case localv1.Protocol.TCP:
      return 'tcp'
    case localv1.Protocol.UDP:
      return 'udp'
    case localv1.Protocol.SCTP:
      return 'sctp'
    default:
      return undefined
  }
}

export const protocolBytes = (protocol: Protocol): string => `${String.fromCharCode(protocolNumbers[protocol])}\0\0\0`

export const portBytes = (port: number): string => `${String.fromCharCode(port >> 8, port & 0xff)}\0\0`

// `numgen` leaves its number in the byte order of the machine.
const slotOrder: readonly number[] = endianness() === 'LE' ? [0, 8, 16, 24] : [24, 16, 8, 0]

const slotsAsBytes: string[] = []

export function slotBytes(slot: number): string {
  slotsAsBytes[slot] ??= String.fromCharCode(...slotOrder.map((shift) => (slot >>> shift) & 0xff))
  return slotsAsBytes[slot]
}

export const slotOf = (bytes: string): number =>
  slotOrder.reduce((slot, shift, index) => slot + bytes.charCodeAt(index) * 2 ** shift, 0)

export const serviceKey = (address: string, protocol: Protocol, port: number): string =>
  address + protocolBytes(protocol) + portBytes(port)

export const nodePortKey = (protocol: Protocol, port: number): string => protocolBytes(protocol) + portBytes(port)

export const endpointData = (address: string, port: number): string => address + portBytes(port)

export function put(elements: Elements, path: SetPath, key: string, data = ''): void {
  const map = elements.get(path)
  if (map) map.set(key, data)
  else elements.set(path, new Map([[key, data]]))
}

export function countElements(elements: Elements): number {
  let count = 0
  for (const map of elements.values()) count += map.size
  return count
}
