import { type Log, messageOf } from '@kpng/api'
import { checkNetworkRights } from '../capabilities.js'
import type { Libc } from '../libc.js'
import { Drift } from './drift.js'
import {
  type ChainPath,
  countElements,
  difference,
  type ElementMap,
  type Elements,
  isEmpty,
  operationCount,
  type SetPath,
  setPath,
  splitSetPath,
  type Transaction,
} from './element.js'
import type { TableFamily } from './family.js'
import { readOutline, type TableOutline } from './outline.js'
import { checkRuleset } from './requirements.js'
import { chainOf, type Ruleset, rulesetVersion, sealSet } from './ruleset.js'
import type { SetShape } from './set.js'
import { type ElementTimes, lookUpElement, readSet, type SetAt, writeElements } from './set-elements.js'
import { NftSocket } from './socket.js'
import {
  type TableAt,
  writeChainRemoval,
  writeExtraChain,
  writeMarker,
  writeTable,
  writeTableRemoval,
  writeTableWhole,
} from './table-messages.js'

/** Elements of a set that packets write, with the time at which each expires. */
export interface TimedElements {
  readonly elements: ElementMap
  readonly times: ReadonlyMap<string, ElementTimes>
}

/** `ours`: exactly the rules and sets of this ruleset. `missing`: no table. `other`: another version, or somebody changed it. */
type TableState = 'ours' | 'missing' | 'other'

/** What `find` found. */
export interface Found {
  readonly states: ReadonlyMap<TableFamily, TableState>
  /** The elements of the tables that are as they should be. */
  readonly known: Elements
  /** There was no table of an earlier run, so that there are no elements. */
  readonly isNew: boolean
}

/** Runs the write of a transaction of so many elements, for those who measure it. */
export type Around = (operations: number, write: () => Promise<void>) => Promise<void>

const directly: Around = (_, write) => write()

export interface TablesOptions {
  readonly libc: Libc
  readonly families: readonly TableFamily[]
  readonly ruleset: Ruleset
  readonly log: Log
  /** Somebody else changed the tables: `drift` says how. Once until `find`. Default: nobody is told. */
  readonly onForeignChange?: () => void
}

/** The tables of one owner in this machine's kernel. */
export class Tables {
  readonly families: readonly TableFamily[]
  #ruleset: Ruleset
  readonly #socket: NftSocket
  /** For work beside transactions, so that a transaction never waits for it. */
  readonly #beside: NftSocket
  readonly #log: Log
  readonly #drift: Drift
  /** Extra chains that exist. */
  #chains = new Set<ChainPath>()
  /** Whether the tables were made by `prepare`, and so are not of an earlier run. */
  #areNew = false
  /** Whether nothing was written into the tables that `prepare` made. */
  #areEmpty = false

  private constructor({ libc, families, ruleset, log, onForeignChange = () => {} }: TablesOptions) {
    this.families = families
    this.#ruleset = ruleset
    this.#log = log
    this.#socket = new NftSocket(libc)
    this.#beside = new NftSocket(libc)
    this.#drift = new Drift(libc, ruleset.tableName, [this.#socket.port, this.#beside.port], onForeignChange)
  }

  /** Opens what is needed, and makes the tables if there are none. The error says what the machine lacks. */
  static async open(options: TablesOptions): Promise<Tables> {
    checkNetworkRights('nftables')
    const { libc, families, ruleset, log } = options
    const tables = new Tables(options)
    try {
      // Tables that could be made, or that are as we make them, prove more than any check.
      if (!(await tables.#prepare())) await checkRuleset(libc, families, ruleset)
    } catch (error) {
      tables.close()
      throw error
    }
    log.info('nftables is ready', { table: ruleset.tableName, families: families.join(' ') })
    return tables
  }

  get ruleset(): Ruleset {
    return this.#ruleset
  }

  /** Another ruleset: the tables get it with the next `find` and `bring`. */
  set ruleset(ruleset: Ruleset) {
    this.#ruleset = ruleset
    this.#areEmpty = false
  }

  /** Makes the tables if there are none. Returns whether there are tables of this version then; `bring` handles all other cases. */
  async #prepare(): Promise<boolean> {
    try {
      this.#drift.restart()
      const all = [...(await this.#inspect()).states.values()]
      if (all.every((state) => state === 'ours')) return true
      if (!all.every((state) => state === 'missing')) return false
      await this.#make(this.families, directly)
      this.#areNew = true
      this.#areEmpty = true
      return true
    } catch (error) {
      this.#log.detail(1, 'The tables could not be made at once; checking why', { error: messageOf(error) })
      return false
    }
  }

  /**
   * Whether an earlier run left tables of ours, of whatever version, that are not empty.
   * @param hint a set that is filled in nearly every table that is not empty
   */
  async areFilled(hint: string): Promise<boolean> {
    if (this.#areNew) return false
    for (const family of this.families) if (await this.#isFilled(family, hint)) return true
    return false
  }

  /** An earlier run may have ended after it made the table and before its first transaction. */
  async #isFilled(family: TableFamily, hint: string): Promise<boolean> {
    if (!(await this.#outline(this.#beside, family))) return false
    try {
      if ((await this.readBeside(setPath(family, hint))).size > 0) return true
      return countElements(await this.#readAll(this.#beside, family)) > 0
    } catch {
      // A table of another version, with other sets. Only a table of this version can be empty.
      return true
    }
  }

  /** What is in the kernel now. Changes by others count as drift from here on. */
  async find(): Promise<Found> {
    const areEmpty = this.#areEmpty
    this.#areEmpty = false
    const all = (state: TableState) => new Map(this.families.map((family) => [family, state]))
    if (areEmpty && this.#drift.reason() === undefined) return { states: all('ours'), known: new Map(), isNew: true }
    // Before anything is read, so that no later change by others is missed.
    this.#drift.restart()
    const { states, extraChains } = await this.#inspect()
    this.#chains = new Set([...extraChains].filter((path) => states.get(splitSetPath(path).family) === 'ours'))
    const known: Elements = new Map()
    for (const family of this.families) {
      if (states.get(family) !== 'ours') continue
      for (const [path, map] of await this.#readAll(this.#socket, family)) known.set(path, map)
    }
    return { states, known, isNew: [...states.values()].every((state) => state === 'missing') }
  }

  /** Makes the tables that are missing. */
  async makeMissing({ states }: Found, around = directly): Promise<void> {
    const missing = this.families.filter((family) => states.get(family) === 'missing')
    if (missing.length > 0) await this.#make(missing, around)
  }

  /**
   * Makes the tables right, and their elements the wanted ones. A table of this version stays, and only elements that differ are written;
   * a table of another version, or one that somebody changed, is replaced. Resolves with what differed in the tables that stayed.
   */
  async bring(found: Found, wanted: Elements, around = directly): Promise<Transaction> {
    await this.makeMissing(found, around)
    const others = this.families.filter((family) => found.states.get(family) === 'other')
    const known = new Map(found.known)
    if (others.length > 0) {
      for (const [path, map] of await this.#replace(others, wanted, around)) known.set(path, map)
    }
    const transaction = difference(known, wanted)
    await this.commit(transaction, around)
    await this.#removeUnusedChains(wanted)
    return transaction
  }

  /** The state of our tables, and the extra chains that they have. */
  async #inspect(): Promise<{ states: Map<TableFamily, TableState>; extraChains: Set<ChainPath> }> {
    const states = new Map<TableFamily, TableState>()
    const extraChains = new Set<ChainPath>()
    for (const family of this.families) {
      const outline = await this.#outline(this.#socket, family)
      states.set(family, outline ? this.#stateOf(family, outline) : 'missing')
      for (const chain of outline?.extraChains.keys() ?? []) extraChains.add(`${family} ${chain}`)
    }
    return { states, extraChains }
  }

  #stateOf(family: TableFamily, { sets, extraChains, digest }: TableOutline): TableState {
    const isOurs =
      sets.has(rulesetVersion(family, this.ruleset)) &&
      sets.has(sealSet(digest)) &&
      [...extraChains.values()].every((isWhole) => isWhole)
    return isOurs ? 'ours' : 'other'
  }

  /** Until elements are added, all packets pass as if there were no table. */
  async #make(families: readonly TableFamily[], around: Around): Promise<void> {
    await this.#write('new tables', 0, around, (buffer) => {
      for (const family of families) writeTableWhole(buffer, family, this.ruleset)
    })
    await this.#seal(families)
  }

  /** What packets wrote survives the replacement of a table: an upgrade must not move clients to other endpoints. */
  async #replace(others: TableFamily[], all: Elements, around: Around): Promise<Elements> {
    const kept = new Map<SetPath, TimedElements>()
    for (const family of others) {
      for (const [name, shape] of this.ruleset.sets[family]) {
        if (shape.dynamic) kept.set(setPath(family, name), await this.#timedIn(family, name, shape))
      }
    }
    const brought: Elements = new Map([...all].filter(([path]) => others.includes(splitSetPath(path).family)))
    const count = [...kept.values()].reduce((sum, { elements }) => sum + elements.size, countElements(brought))
    await this.#write('the replacement of tables', count, around, (buffer) => {
      for (const family of others) {
        // Adding first makes the removal succeed if there is no such table.
        writeTable(buffer, this.#tableOf(family))
        writeTableRemoval(buffer, this.#tableOf(family))
        writeTableWhole(buffer, family, this.ruleset)
      }
      for (const chain of chainsNeeded(this.ruleset, brought)) writeExtraChain(buffer, this.ruleset, chain)
      for (const [path, map] of brought) writeElements(buffer, 'add', this.#at(path), map)
      for (const [path, timed] of kept) writeElements(buffer, 'add', this.#at(path), timed.elements, timed.times)
    })
    for (const path of chainsNeeded(this.ruleset, brought)) this.#chains.add(path)
    await this.#seal(others)
    return brought
  }

  /** Records in new tables what the kernel made of our rules, so that any change can be detected, even after a restart. */
  async #seal(families: readonly TableFamily[]): Promise<void> {
    const seals = new Map<TableFamily, string>()
    for (const family of families) {
      const outline = await this.#outline(this.#socket, family)
      if (outline) seals.set(family, sealSet(outline.digest))
    }
    // If somebody removed the tables at once, the drift check finds out.
    if (seals.size === 0) return
    await this.#write('the marks of new tables', seals.size, directly, (buffer) => {
      for (const [family, name] of seals) writeMarker(buffer, this.#tableOf(family), name)
    })
  }

  /** Nothing if the old table has no such set, or one of another shape. */
  async #timedIn(family: TableFamily, name: string, { key, data }: SetShape): Promise<TimedElements> {
    const lengthOf = (fields: SetShape['data']) =>
      typeof fields === 'object'
        ? fields.reduce((sum, field) => sum + (field === 'address' && family === 'ip6' ? 16 : 4), 0)
        : 0
    const [keyLength, dataLength] = [lengthOf(key), lengthOf(data)]
    try {
      const found = await this.readTimed(setPath(family, name))
      const hasShape = [...found.elements].every(
        ([own, value]) => own.length === keyLength && value.length === dataLength,
      )
      if (hasShape) return found
    } catch {
      // An old version, or somebody else's table.
    }
    return { elements: new Map(), times: new Map() }
  }

  /** All or nothing; rejects if nothing was written. Chains that elements refer to are made in the same transaction. */
  async commit(transaction: Transaction, around = directly): Promise<void> {
    // An empty transaction is not sent to the kernel.
    if (isEmpty(transaction)) return
    const newChains = [...chainsNeeded(this.ruleset, transaction.add)].filter((path) => !this.#chains.has(path))
    const operations = operationCount(transaction)
    await this.#write(`a transaction of ${operations} elements`, operations, around, (buffer) => {
      for (const chain of newChains) writeExtraChain(buffer, this.ruleset, chain)
      for (const [path, map] of transaction.remove) writeElements(buffer, 'delete', this.#at(path), map)
      for (const [path, map] of transaction.add) writeElements(buffer, 'add', this.#at(path), map)
    })
    for (const path of newChains) this.#chains.add(path)
  }

  /** The extra chains that no element refers to. They are harmless, so a failure is not one of the sync, which tries again when it is a full one. */
  async #removeUnusedChains(elements: Elements): Promise<void> {
    const needed = chainsNeeded(this.ruleset, elements)
    const unused = [...this.#chains].filter((path) => !needed.has(path))
    if (unused.length === 0) return
    try {
      await this.#write(`to remove ${unused.length} chains`, 0, directly, (buffer) => {
        for (const path of unused) {
          const { family, name } = splitSetPath(path)
          writeChainRemoval(buffer, this.#tableOf(family), name)
        }
      })
      for (const path of unused) this.#chains.delete(path)
    } catch (error) {
      this.#log.detail(1, 'Cannot remove unused chains; the next full sync tries again', { error: messageOf(error) })
    }
  }

  /** One transaction of ours. What others change meanwhile counts as drift. */
  #write(
    what: string,
    operations: number,
    around: Around,
    write: Parameters<NftSocket['transact']>[1],
    socket = this.#socket,
  ): Promise<void> {
    return around(operations, () => this.#drift.during(operations, () => socket.transact(what, write)))
  }

  /** The data of one element of a set; undefined if it is not there. May be called during a transaction. */
  lookUp(path: SetPath, key: string): Promise<string | undefined> {
    return lookUpElement(this.#beside, this.#at(path), key)
  }

  /** What a set of ours holds. May be called during a transaction. */
  async readBeside(path: SetPath): Promise<ElementMap> {
    return (await readSet(this.#beside, this.#at(path))).finish()
  }

  /** The counters of the elements of a counting set. May be called during a transaction. */
  async packetsBeside(path: SetPath): Promise<ReadonlyMap<string, number>> {
    return (await readSet(this.#beside, this.#at(path))).packets
  }

  /** What packets wrote into a set. */
  async readTimed(path: SetPath): Promise<TimedElements> {
    const reader = await readSet(this.#socket, this.#at(path))
    return { elements: reader.finish(), times: reader.times }
  }

  /** Removes elements of sets that packets write, all or none. May be called during a transaction. */
  async removeBeside(remove: Elements): Promise<void> {
    const count = countElements(remove)
    const write: Parameters<NftSocket['transact']>[1] = (buffer) => {
      for (const [path, map] of remove) writeElements(buffer, 'delete', this.#at(path), map)
    }
    if (count > 0) await this.#write(`to remove ${count} elements`, count, directly, write, this.#beside)
  }

  /** What is in all our sets of a family, except those that packets write. The table must be ours. */
  readAll(family: TableFamily): Promise<Elements> {
    return this.#readAll(this.#beside, family)
  }

  async #readAll(socket: NftSocket, family: TableFamily): Promise<Elements> {
    const elements: Elements = new Map()
    for (const [name, { dynamic }] of this.ruleset.sets[family]) {
      if (dynamic) continue
      const map = (await readSet(socket, this.#at(setPath(family, name)))).finish()
      if (map.size > 0) elements.set(setPath(family, name), map)
    }
    return elements
  }

  /** Undefined if there is no table of ours. Rejects if the table changed during every attempt to read it. */
  #outline(socket: NftSocket, family: TableFamily): Promise<TableOutline | undefined> {
    return socket.inTurn((netlink) => readOutline(netlink, family, this.ruleset))
  }

  /** Why our tables may differ from what we wrote; undefined if nobody changed them. The same until `find` looks at them. */
  drift(): string | undefined {
    return this.#drift.reason()
  }

  close(): void {
    this.#drift.close()
    this.#socket.close()
    this.#beside.close()
  }

  #tableOf(family: TableFamily): TableAt {
    return { family, name: this.ruleset.tableName }
  }

  #at(path: SetPath): SetAt {
    const { family, name } = splitSetPath(path)
    return { family, name, table: this.ruleset.tableName, shape: shapeAt(this.ruleset, path) }
  }
}

/** What a set is made of. There must be one. */
export function shapeAt({ sets }: Ruleset, path: SetPath): SetShape {
  const { family, name } = splitSetPath(path)
  const shape = sets[family].get(name)
  if (!shape) throw new Error(`There is no set or map "${path}" in the ruleset.`)
  return shape
}

/** The extra chains that elements refer to. */
export function chainsNeeded(ruleset: Ruleset, elements: Elements): Set<ChainPath> {
  const chains = new Set<ChainPath>()
  if (!ruleset.extraChain) return chains
  for (const [path, map] of elements) {
    if (shapeAt(ruleset, path).data !== 'verdict') continue
    const { family } = splitSetPath(path)
    for (const verdict of map.values()) {
      const chain = chainOf(verdict)
      if (chain !== undefined && ruleset.extraChain(family, chain)) chains.add(`${family} ${chain}`)
    }
  }
  return chains
}
