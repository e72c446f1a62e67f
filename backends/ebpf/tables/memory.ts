import { hostPort } from '@kpng/api'
import { addressText, endpoint, type Sizes, set, slot, writeAddress } from '../layout.js'
import type { HashMap } from './hash-table.js'

/** Where the tables are: maps of the kernel that are mapped into this process. In tests, plain memory. */
export interface TableMaps {
  readonly sizes: Sizes
  readonly sets: ArrayBuffer
  readonly slots: ArrayBuffer
  readonly endpoints: ArrayBuffer
  readonly frontends: HashMap
  readonly nodeAddresses: HashMap
  /** Resolves when every program run that began before the call has ended. */
  gracePeriod(): Promise<void>
}

/** A set as it is in memory. */
export interface ReadSet {
  readonly base: number
  readonly count: number
  readonly affinitySeconds: number
  /** By address and port. */
  readonly endpoints: ReadonlyMap<string, number>
  /** Whether something in it does not fit together: somebody else wrote it. */
  readonly isDamaged: boolean
}

/** Reads and writes the arrays. What must not be seen halfway is written with one store. */
export class TableMemory {
  readonly #sizes: Sizes
  readonly #runs: BigUint64Array
  readonly #sets: Uint32Array
  readonly #slots: Uint32Array
  readonly #endpoints: Buffer
  readonly #endpointWords: Uint32Array

  constructor({ sizes, sets, slots, endpoints }: Pick<TableMaps, 'sizes' | 'sets' | 'slots' | 'endpoints'>) {
    this.#sizes = sizes
    this.#runs = new BigUint64Array(sets)
    this.#sets = new Uint32Array(sets)
    this.#slots = new Uint32Array(slots)
    this.#endpoints = Buffer.from(endpoints)
    this.#endpointWords = new Uint32Array(endpoints)
  }

  /** Makes another run the set's. Programs see the old one or this one. */
  flip(number: number, base: number, count: number): void {
    // An atomic store: what was written before it is seen by everybody who sees it.
    Atomics.store(this.#runs, (number * set.bytes) / 8, (BigInt(count) << 32n) | BigInt(base))
  }

  setOptions(number: number, affinitySeconds: number, flags: number): void {
    const word = (number * set.bytes) / 4
    this.#sets[word + set.affinitySeconds / 4] = affinitySeconds
    this.#sets[word + set.flags / 4] = flags
  }

  resetConnections(number: number): void {
    this.#runs[(number * set.bytes + set.connections) / 8] = 0n
  }

  connections(number: number): number {
    return Number(this.#runs[(number * set.bytes + set.connections) / 8])
  }

  setSlot(place: number, endpointNumber: number): void {
    this.#slots[(place * slot.bytes) / 4] = endpointNumber
  }

  writeEndpoint(number: number, { ip, port }: { ip: string; port: number }, setNumber: number): void {
    const at = number * endpoint.bytes
    writeAddress(this.#endpoints, at + endpoint.address, ip)
    this.#endpoints.writeUInt16BE(port, at + endpoint.port)
    this.#endpointWords[(at + endpoint.set) / 4] = setNumber
  }

  /** Clients that were kept on the endpoint draw again. */
  retireEndpoint(number: number): void {
    this.#endpointWords[(number * endpoint.bytes + endpoint.set) / 4] = 0
  }

  /** `10.244.1.5:8080` */
  endpointText(number: number): string {
    const at = number * endpoint.bytes
    const address = addressText(this.#endpoints.subarray(at, at + 16))
    return hostPort(address, this.#endpoints.readUInt16BE(at + endpoint.port))
  }

  readSet(number: number): ReadSet {
    const run = Atomics.load(this.#runs, (number * set.bytes) / 8)
    const base = Number(run & 0xffff_ffffn)
    const count = Number(run >> 32n)
    const affinitySeconds = this.#sets[(number * set.bytes + set.affinitySeconds) / 4] as number
    const endpoints = new Map<string, number>()
    const isInRange = base + count <= this.#sizes.slots
    let isDamaged = !isInRange || (count > 0 && base === 0)
    const seen = new Set<number>()
    for (let index = 0; index < (isInRange ? count : 0); index++) {
      const endpointNumber = this.#slots[((base + index) * slot.bytes) / 4] as number
      if (seen.has(endpointNumber)) continue
      seen.add(endpointNumber)
      if (!this.#serves(endpointNumber, number)) isDamaged = true
      else endpoints.set(this.endpointText(endpointNumber), endpointNumber)
    }
    return { base, count, affinitySeconds, endpoints, isDamaged: isDamaged || endpoints.size !== seen.size }
  }

  /** Retires every endpoint that is not among these. */
  retireAllBut(used: ReadonlySet<number>): void {
    for (let number = 0; number < this.#sizes.endpoints; number++) {
      if (!used.has(number)) this.retireEndpoint(number)
    }
  }

  #serves(number: number, setNumber: number): boolean {
    return number > 0 && this.#endpointWords[(number * endpoint.bytes + endpoint.set) / 4] === setNumber
  }
}
