import { bytesOfIp, ipOfBytes, KpngError } from '@kpng/api'
import type { MapShape } from '@kpng/linux/bpf'

// What the maps look like. Programs and tables share this file. IPv4 addresses are ::ffff:a.b.c.d everywhere: one layout for both
// families, and a socket of IPv6 that connects to a mapped address finds the same Service.

/** Increase it with every change of a key or value that old programs or old tables would misread. */
export const layoutVersion = 1

/** Key: a frontend; a node port has the address :: or ::ffff:0.0.0.0. Value: the number of its set. Entries are never overwritten. */
export const frontendKey = { address: 0, portAndProtocol: 16, bytes: 20 } as const
/** Key: an address of this node. Value: `onlyHost` or 0. */
export const nodeAddress = { keyBytes: 16, valueBytes: 4, onlyHost: 1 } as const
/** The endpoints of a frontend: a run of slots. `run` holds base and count in one aligned word, so that they change together. */
export const set = { run: 0, affinitySeconds: 8, flags: 12, connections: 16, bytes: 24 } as const
export const setFlags = { hash: 1 } as const
/** A place in a run: the number of an endpoint. The kernel rounds values of arrays up to 8 bytes. */
export const slot = { endpoint: 0, bytes: 8 } as const
/** `set` is the one that it serves; 0 if it serves none any more. */
export const endpoint = { address: 0, port: 16, set: 20, bytes: 24 } as const
/** Key: who asks which set. Value: when the client was seen last, and its endpoint. */
export const client = { namespace: 0, set: 8, isKnown: 12, bytes: 16 } as const
export const remembered = { atNs: 0, endpoint: 8, bytes: 16 } as const
/** Beside a socket: where it is connected to, and what it asked for. Each is an address and a port. */
export const peer = { endpoint: 0, service: 20, port: 16, bytes: 40 } as const

export const TCP = 6

/** The key of an address and port of TCP. */
export function frontendKeyOf(address: string, port: number): Buffer {
  const key = Buffer.alloc(frontendKey.bytes)
  writeAddress(key, frontendKey.address, address)
  key.writeUInt16BE(port, frontendKey.portAndProtocol)
  key.writeUInt8(TCP, frontendKey.portAndProtocol + 2)
  return key
}

/** The 16 bytes of an address of either family. */
export function mappedBytes(address: string): Buffer {
  const bytes = Buffer.alloc(16)
  writeAddress(bytes, 0, address)
  return bytes
}

/** Writes the 16 bytes of an address of either family. */
export function writeAddress(to: Buffer, at: number, address: string): void {
  const bytes = bytesOfIp(address)
  if (!bytes) throw new KpngError('invalid', `"${address}" is not an IP address, so no socket can be sent there.`)
  if (bytes.length === 4) to.fill(0, at, at + 10).fill(0xff, at + 10, at + 12)
  to.set(bytes, at + 16 - bytes.length)
}

const mappedPrefix = mappedBytes('0.0.0.0').subarray(0, 12)

/** The canonical text of 16 bytes. */
export const addressText = (bytes: Uint8Array): string =>
  mappedPrefix.every((byte, index) => byte === bytes[index]) ? ipOfBytes(bytes.subarray(12, 16)) : ipOfBytes(bytes)

/** How much the maps can hold. All are powers of two. */
export interface Sizes {
  readonly frontends: number
  readonly slots: number
  readonly endpoints: number
  readonly clients: number
}

/**
 * The sizes of the maps for a number of endpoints. A frontend has at least one. A run of slots is rounded up to a power of two, and the old run of a set
 * rests beside the current one for a moment. A Maglev table has 1,021 slots.
 */
export function sizesFor(maxEndpoints: number, usesMaglev: boolean): Sizes {
  const endpoints = 2 ** Math.ceil(Math.log2(Math.max(maxEndpoints, 64)))
  return { endpoints, frontends: endpoints / 2, slots: endpoints * (usesMaglev ? 64 : 4), clients: 65_536 }
}

export type MapName = 'frontends' | 'nodeAddresses' | 'sets' | 'slots' | 'endpoints' | 'clients' | 'peers'

/** The shape of each map. */
export const shapesFor = (sizes: Sizes): Readonly<Record<MapName, MapShape>> => ({
  frontends: { type: 'hash', keyBytes: frontendKey.bytes, valueBytes: 4, maxEntries: sizes.frontends },
  nodeAddresses: { type: 'hash', keyBytes: nodeAddress.keyBytes, valueBytes: nodeAddress.valueBytes, maxEntries: 1024 },
  sets: { type: 'array', keyBytes: 4, valueBytes: set.bytes, maxEntries: sizes.frontends },
  slots: { type: 'array', keyBytes: 4, valueBytes: slot.bytes, maxEntries: sizes.slots },
  endpoints: { type: 'array', keyBytes: 4, valueBytes: endpoint.bytes, maxEntries: sizes.endpoints },
  clients: { type: 'lruHash', keyBytes: client.bytes, valueBytes: remembered.bytes, maxEntries: sizes.clients },
  peers: { type: 'socketStorage', keyBytes: 4, valueBytes: peer.bytes, maxEntries: 0 },
})
