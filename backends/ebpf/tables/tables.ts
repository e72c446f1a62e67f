import { hostPort } from '@kpng/api'
import { setFlags } from '../layout.js'
import type { Entry } from './entry.js'
import { GracePeriods } from './grace-periods.js'
import { HashTable } from './hash-table.js'
import { maglevSlots, maglevTable } from './maglev.js'
import { type TableMaps, TableMemory } from './memory.js'
import { type KnownSet, Numbers, readBack } from './read-back.js'
import { MapFull } from './runs.js'

/** How many of the frontends that did not fit are tried again with each change. */
const retriedAtOnce = 100

export interface TablesOptions {
  /** How an endpoint is chosen. `maglev`: by the client's network namespace. */
  readonly balancing: 'random' | 'maglev'
}

/** What a frontend is to become; undefined: it is gone, or left to nftables. */
export type EntryChange = readonly [key: string, entry: Entry | undefined]

/**
 * Writes what the programs read. A change is a copy, a flip and a grace period: new endpoints and a new run of slots are written where no
 * program looks, one store makes them the set's, and what they replace rests until no program can be reading it.
 *
 * A frontend that does not fit into the maps is left out, and nftables serves it: see `leftOut`.
 */
export class Tables {
  readonly #memory: TableMemory
  readonly #sizes: TableMaps['sizes']
  readonly #graces: GracePeriods
  readonly #frontends: HashTable
  readonly #nodeAddresses: HashTable
  readonly #isMaglev: boolean
  #known = new Map<string, KnownSet>()
  readonly #leftOut = new Map<string, { readonly entry: Entry; readonly map: string }>()
  #numbers: Numbers
  #last: Promise<void> = Promise.resolve()
  #checked: Iterator<readonly [string, KnownSet]> | undefined

  constructor(maps: TableMaps, { balancing }: TablesOptions) {
    this.#sizes = maps.sizes
    this.#memory = new TableMemory(maps)
    this.#graces = new GracePeriods(() => maps.gracePeriod())
    this.#frontends = new HashTable(maps.frontends, this.#graces)
    this.#nodeAddresses = new HashTable(maps.nodeAddresses, this.#graces)
    this.#isMaglev = balancing === 'maglev'
    this.#numbers = new Numbers(maps.sizes)
  }

  /** The maps that were too small, each with the number of frontends that are left out because of it. */
  get leftOut(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { map } of this.#leftOut.values()) counts.set(map, (counts.get(map) ?? 0) + 1)
    return counts
  }

  /** How many frontends are in the maps. */
  get size(): number {
    return this.#known.size
  }

  /** Makes the maps hold exactly these frontends, whatever they held before. Returns how many had to be written or removed. */
  load(wanted: ReadonlyMap<string, Entry>): Promise<number> {
    return this.#inTurn(() => this.#load(wanted))
  }

  /** Changes that are given at the same time are made one after the other. */
  change(changes: readonly EntryChange[]): Promise<void> {
    return this.#inTurn(() => this.#change(changes))
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.then(
      () => {},
      () => {},
    )
    return result
  }

  async #load(wanted: ReadonlyMap<string, Entry>): Promise<number> {
    // A process that was killed, or this one, may have freed something a moment ago.
    await this.#graces.whenOver()
    const { known, numbers } = readBack(this.#frontends, this.#memory, this.#sizes)
    this.#known = known
    this.#numbers = numbers
    this.#leftOut.clear()
    this.#checked = undefined
    const changes: EntryChange[] = []
    for (const key of this.#known.keys()) if (!wanted.has(key)) changes.push([key, undefined])
    for (const [key, entry] of wanted) if (!this.#holds(entry)) changes.push([key, entry])
    await this.#change(changes)
    return changes.length
  }

  async #change(changes: readonly EntryChange[]): Promise<void> {
    await this.#apply(changes)
    if (this.#leftOut.size === 0) return
    // What rests now may be room for them.
    if (this.#graces.isBusy) await this.#graces.whenOver()
    // Those that have waited longest; the next change tries others.
    const waiting = [...this.#leftOut].slice(0, retriedAtOnce).map(([key, { entry }]): EntryChange => [key, entry])
    await this.#apply(waiting)
  }

  async #apply(changes: readonly EntryChange[]): Promise<void> {
    const added: (readonly [key: string, set: number])[] = []
    for (const [key, entry] of changes) {
      this.#leftOut.delete(key)
      const known = this.#known.get(key)
      if (!entry) this.#remove(key)
      else if (!known || !this.#holds(entry)) {
        try {
          const number = this.#write(entry, known)
          if (!known) added.push([key, number])
        } catch (error) {
          if (!(error instanceof MapFull)) throw error
          this.#leaveOut(entry, error.map)
        }
      }
    }
    for (const key of await this.#frontends.add(added)) {
      const entry = changes.find(([changed]) => changed === key)?.[1]
      if (entry) this.#leaveOut(entry, 'frontends')
    }
  }

  /** Nftables serves it, so what the maps hold for it must go: it may be out of date. */
  #leaveOut(entry: Entry, map: string): void {
    this.#remove(entry.key)
    this.#leftOut.set(entry.key, { entry, map })
  }

  /** Makes the node's addresses those that are given. */
  async setNodeAddresses(wanted: ReadonlyMap<string, number>): Promise<void> {
    const found = new Map(this.#nodeAddresses.entries())
    for (const [key, value] of found) if (wanted.get(key) !== value) this.#nodeAddresses.delete(key)
    await this.#nodeAddresses.add([...wanted].filter(([key, value]) => found.get(key) !== value))
  }

  /** What the maps hold for a frontend, read back. */
  read(key: string): { readonly set: number; readonly endpoints: string[]; readonly connections: number } | undefined {
    const number = this.#frontends.lookup(key)
    if (number === undefined || number >= this.#sizes.frontends) return undefined
    const { endpoints } = this.#memory.readSet(number)
    return { set: number, endpoints: [...endpoints.keys()], connections: this.#memory.connections(number) }
  }

  /** `10.244.1.5:8080`: the endpoint with a number. */
  endpointText(number: number): string {
    return this.#memory.endpointText(number)
  }

  /** How many connections were counted for a frontend; undefined if it is not in the maps. */
  connections(key: string): number | undefined {
    const known = this.#known.get(key)
    return known && this.#memory.connections(known.number)
  }

  /**
   * Compares the next frontends with what the maps hold. Returns a sentence if somebody else changed them.
   * @param limit how many; all of them are compared over several calls
   */
  drift(limit: number): string | undefined {
    this.#checked ??= this.#known.entries()
    for (let count = 0; count < limit; count++) {
      const { value, done } = this.#checked.next()
      if (done) {
        this.#checked = undefined
        return this.#unknownEntries()
      }
      const [key, known] = value as readonly [string, KnownSet]
      // It may have been removed since the last call.
      if (this.#known.get(key) === known && !this.#isIntact(key, known)) {
        this.#checked = undefined
        return 'another program changed the maps of kpng'
      }
    }
    return undefined
  }

  /** Resolves when nothing rests any more. */
  async close(): Promise<void> {
    if (this.#graces.isBusy) await this.#graces.whenOver()
  }

  #isIntact(key: string, known: KnownSet): boolean {
    if (this.#frontends.lookup(key) !== known.number) return false
    const read = this.#memory.readSet(known.number)
    return (
      !read.isDamaged &&
      read.base === known.base &&
      read.count === known.count &&
      read.endpoints.size === known.endpoints.size &&
      [...known.endpoints].every(([text, number]) => read.endpoints.get(text) === number)
    )
  }

  #unknownEntries(): string | undefined {
    let count = 0
    for (const [key] of this.#frontends.entries()) {
      count++
      if (!this.#known.has(key)) return 'another program added to the maps of kpng'
    }
    return count === this.#known.size ? undefined : 'another program removed something from the maps of kpng'
  }

  /** Whether the set of an entry is as it should be. The order of its slots does not matter. */
  #holds({ key, endpoints, affinitySeconds }: Entry): boolean {
    const known = this.#known.get(key)
    const slots = this.#isMaglev && endpoints.length > 0 ? maglevSlots : endpoints.length
    return (
      known !== undefined &&
      !known.isDamaged &&
      known.affinitySeconds === affinitySeconds &&
      known.count === slots &&
      known.endpoints.size === endpoints.length &&
      endpoints.every(({ ip, port }) => known.endpoints.has(hostPort(ip, port)))
    )
  }

  /** Writes a set, and returns its number. If something is full, nothing is changed. */
  #write({ key, endpoints, affinitySeconds }: Entry, known: KnownSet | undefined): number {
    const number = known?.number ?? this.#numbers.sets.take(1)
    const kept = known && !known.isDamaged ? known.endpoints : undefined
    const numbers = new Map<string, number>()
    const fresh: number[] = []
    let base: number
    let slots: readonly string[]
    try {
      for (const each of endpoints) {
        const text = hostPort(each.ip, each.port)
        let endpointNumber = kept?.get(text)
        if (endpointNumber === undefined) {
          endpointNumber = this.#numbers.endpoints.take(1)
          fresh.push(endpointNumber)
          this.#memory.writeEndpoint(endpointNumber, each, number)
        }
        numbers.set(text, endpointNumber)
      }
      slots = this.#isMaglev ? maglevTable([...numbers.keys()]) : [...numbers.keys()]
      base = this.#numbers.slots.take(slots.length)
    } catch (error) {
      // No program has seen them.
      for (const each of fresh) this.#numbers.endpoints.give(each, 1)
      if (!known) this.#numbers.sets.give(number, 1)
      throw error
    }
    for (const [index, text] of slots.entries()) this.#memory.setSlot(base + index, numbers.get(text) as number)
    this.#memory.setOptions(number, affinitySeconds, this.#isMaglev ? setFlags.hash : 0)
    if (!known) this.#memory.resetConnections(number)
    this.#memory.flip(number, base, slots.length)
    if (known) this.#release(known, numbers)
    this.#known.set(key, {
      ...{ number, base, affinitySeconds, isDamaged: false },
      count: slots.length,
      endpoints: numbers,
    })
    return number
  }

  #remove(key: string): void {
    const known = this.#known.get(key)
    if (!known) return
    this.#known.delete(key)
    // From here on its sockets are left to nftables.
    this.#memory.flip(known.number, 0, 0)
    this.#frontends.delete(key)
    this.#release(known, new Map())
    const { sets } = this.#numbers
    this.#graces.after(() => sets.give(known.number, 1))
  }

  /** The run of a set and the endpoints that it no longer has rest, and are free then. */
  #release({ base, count, endpoints }: KnownSet, kept: ReadonlyMap<string, number>): void {
    const gone: number[] = []
    for (const [text, number] of endpoints) if (kept.get(text) !== number) gone.push(number)
    for (const number of gone) this.#memory.retireEndpoint(number)
    const { slots, endpoints: numbers } = this.#numbers
    this.#graces.after(() => {
      if (count > 0) slots.give(base, count)
      for (const number of gone) numbers.give(number, 1)
    })
  }
}
