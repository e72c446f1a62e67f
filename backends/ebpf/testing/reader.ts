import { addressText, endpoint, set, slot } from '../layout.js'
import { keyBytes } from '../tables/hash-table.js'
import type { MemoryMaps } from './memory-maps.js'

/**
 * What a connect program does, as a generator: between two reads, somebody else may run. Ends with the endpoint's address and port, or with
 * undefined if the socket is left to nftables.
 */
export function* readLikeAProgram(maps: MemoryMaps, key: string, random: number): Generator<void, string | undefined> {
  const [sets, slots, endpoints] = [maps.sets, maps.slots, maps.endpoints].map((part) => Buffer.from(part)) as [
    ...[Buffer, Buffer, Buffer],
  ]
  const number = maps.frontends.lookup(keyBytes(key))?.readUInt32LE()
  if (number === undefined) return undefined
  yield
  const run = sets.readBigUInt64LE(number * set.bytes)
  const [base, count] = [Number(run & 0xffff_ffffn), Number(run >> 32n)]
  if (count === 0) return undefined
  yield
  const chosen = slots.readUInt32LE((base + (random % count)) * slot.bytes)
  yield
  const address = addressText(endpoints.subarray(chosen * endpoint.bytes, chosen * endpoint.bytes + 16))
  yield
  return `${address}:${endpoints.readUInt16BE(chosen * endpoint.bytes + endpoint.port)}`
}
