import { messageOf } from '@kpng/api'
import { asStep, type SyncStep } from '@kpng/client'
import { checkNetworkRights, type Libc, loadLibc } from '@kpng/linux'
import {
  type ChainPath,
  chainsNeeded,
  countElements,
  type ElementMap,
  type Elements,
  operationCount,
  type Transaction,
} from '../elements/element.js'
import type { Settings } from '../options.js'
import type { TableFamily } from '../rules/family.js'
import { names, type SetPath, sealSet, setPath, splitSetPath } from '../rules/names.js'
import { Drift } from './drift.js'
import { NetlinkWriter, type TimedElements } from './netlink-writer.js'
import { checkRequirements, usableFamilies } from './requirements.js'
import { inspectTables } from './tables.js'

/** Our tables in this machine's kernel. */
export class Kernel {
  readonly families: readonly TableFamily[]
  /** Whether connections are counted. */
  readonly counts: boolean
  readonly #writer: NetlinkWriter
  /** For work beside syncs, so that a sync never waits for it. */
  readonly #sideWriter: NetlinkWriter
  readonly #settings: Settings
  readonly #drift: Drift
  /** Chains beyond the skeleton that exist. */
  #chains = new Set<ChainPath>()
  /** Whether the tables were made by `prepare`, and so are not of an earlier run. */
  #areNew = false
  /** Whether nothing was written into the tables that `prepare` made. */
  #areEmpty = false

  private constructor(libc: Libc, families: readonly TableFamily[], settings: Settings) {
    this.families = families
    this.counts = settings.counters
    this.#settings = settings
    this.#writer = new NetlinkWriter(libc, settings)
    this.#sideWriter = new NetlinkWriter(libc, settings)
    this.#drift = new Drift(libc, settings.tableName, [this.#writer.port, this.#sideWriter.port])
  }

  /**
   * Checks the machine, opens what is needed, and makes the tables if there are none, while the source still reads its list. The
   * error says what is missing.
   */
  static async open(settings: Settings): Promise<Kernel> {
    checkNetworkRights('nftables')
    const families = usableFamilies(settings, settings.log)
    const libc = await loadLibc()
    const kernel = new Kernel(libc, families, settings)
    try {
      // Tables that could be made, or that are as we make them, prove more than any check.
      if (!(await kernel.#prepare())) await checkRequirements(libc, families, settings)
    } catch (error) {
      kernel.close()
      throw error
    }
    settings.log.info('nftables is ready', { table: settings.tableName, families: families.join(' ') })
    return kernel
  }

  /** Makes the tables if there are none. Returns whether there are tables of this version then; `adopt` handles all other cases. */
  async #prepare(): Promise<boolean> {
    try {
      this.#drift.restart()
      const { states } = await this.#inspect()
      const all = [...states.values()]
      if (all.every((state) => state === 'ours')) return true
      if (!all.every((state) => state === 'missing')) return false
      await this.#make(this.families)
      this.#areNew = true
      this.#areEmpty = true
      return true
    } catch (error) {
      this.#settings.log.detail(1, 'The tables could not be made at once; checking why', { error: messageOf(error) })
      return false
    }
  }

  /** Whether an earlier run left tables of ours, of whatever version, that are not empty. */
  async hasTables(): Promise<boolean> {
    if (this.#areNew) return false
    for (const family of this.families) if (await this.#isFilled(family)) return true
    return false
  }

  /** An earlier run may have ended after it made the table and before its first sync. */
  async #isFilled(family: TableFamily): Promise<boolean> {
    if (!(await this.#sideWriter.outline(family))) return false
    try {
      // Nearly always this one set says enough.
      if ((await this.#sideWriter.read(setPath(family, names.clusterIps))).size > 0) return true
      return countElements(await this.#sideWriter.readAll(family)) > 0
    } catch {
      // A table of another version, with other sets. Only a table of this version can be empty.
      return true
    }
  }

  /**
   * Makes sure that our tables are right, and returns the content of their sets. A table of this version stays as it is. A table of
   * another version is replaced together with its elements, which `wanted` derives from what was found. Returns undefined if there
   * were no tables: then they are new and empty.
   */
  async adopt(
    wanted: (known: Elements) => Elements,
    steps?: SyncStep[],
  ): Promise<{ known: Elements; wanted: Elements } | undefined> {
    const areEmpty = this.#areEmpty
    this.#areEmpty = false
    if (areEmpty && this.#drift.take() === undefined) return undefined
    // Before anything is read, so that no later change by others is missed.
    this.#drift.restart()
    const { states, extraChains } = await this.#inspect()
    const inState = (state: string) => this.families.filter((family) => states.get(family) === state)
    const others = inState('other')
    this.#chains = new Set([...extraChains].filter((path) => !others.some((family) => path.startsWith(`${family} `))))
    const missing = inState('missing')
    if (missing.length > 0) await this.#make(missing, steps)
    if (missing.length === this.families.length) return undefined
    const known: Elements = new Map()
    for (const family of inState('ours')) {
      for (const [path, map] of await this.#writer.readAll(family)) known.set(path, map)
    }
    const all = wanted(known)
    if (others.length > 0) await this.#replace(others, all, known, steps)
    return { known, wanted: all }
  }

  #inspect() {
    return inspectTables(this.#writer, this.families, this.#settings)
  }

  async #make(families: readonly TableFamily[], steps?: SyncStep[]): Promise<void> {
    await this.#transaction(0, steps, () => this.#writer.make(families))
    await this.#seal(families)
  }

  /** Session affinity survives the replacement of a table: an upgrade must not move clients to other endpoints. */
  async #replace(others: TableFamily[], all: Elements, known: Elements, steps: SyncStep[] | undefined): Promise<void> {
    const remembered = new Map<SetPath, TimedElements>()
    for (const family of others) remembered.set(setPath(family, names.affinity), await this.#rememberedIn(family))
    const brought: Elements = new Map([...all].filter(([path]) => others.includes(splitSetPath(path).family)))
    const clients = [...remembered.values()].reduce((sum, { elements }) => sum + elements.size, 0)
    await this.#transaction(countElements(brought) + clients, steps, () =>
      this.#writer.replace(others, brought, remembered),
    )
    for (const [path, map] of brought) known.set(path, map)
    for (const path of chainsNeeded(brought)) this.#chains.add(path)
    await this.#seal(others)
  }

  /** Records in new tables what the kernel made of our rules, so that any change can be detected, even after a restart. */
  async #seal(families: readonly TableFamily[]): Promise<void> {
    const seals = new Map<TableFamily, string>()
    for (const family of families) {
      const outline = await this.#writer.outline(family)
      if (outline) seals.set(family, sealSet(outline.digest))
    }
    // If somebody removed the tables at once, the drift check finds out.
    if (seals.size > 0) await this.#drift.during(seals.size, () => this.#writer.mark(seals))
  }

  /** Nothing if the old table has no such map, or one of another shape. */
  async #rememberedIn(family: TableFamily): Promise<TimedElements> {
    try {
      const found = await this.#writer.readTimed(setPath(family, names.affinity))
      const [keyLength, dataLength] = family === 'ip' ? [16, 8] : [40, 20]
      const hasShape = [...found.elements].every(
        ([key, data]) => key.length === keyLength && data.length === dataLength,
      )
      if (hasShape) return found
    } catch {
      // An old version, or somebody else's table.
    }
    return { elements: new Map(), times: new Map() }
  }

  /** One transaction of ours. What others change meanwhile counts as drift. */
  async #transaction(operations: number, steps: SyncStep[] | undefined, write: () => Promise<void>): Promise<void> {
    const commit = () => this.#drift.during(operations, write)
    await (steps ? asStep(steps, 'transaction', { 'kpng.operations': operations }, commit) : commit())
  }

  /** All or nothing. Chains that elements refer to are made in the same transaction. */
  async commit(transaction: Transaction, steps?: SyncStep[]): Promise<void> {
    const operations = operationCount(transaction)
    // An empty transaction is not sent to the kernel.
    if (operations === 0) return
    const newChains = [...chainsNeeded(transaction.add)].filter((path) => !this.#chains.has(path))
    await this.#transaction(operations, steps, () => this.#writer.commit(transaction, newChains))
    for (const path of newChains) this.#chains.add(path)
  }

  /** Removes the chains that no element refers to. `elements` are all elements that there are. */
  async removeUnusedChains(elements: Elements): Promise<void> {
    const needed = chainsNeeded(elements)
    const unused = [...this.#chains].filter((path) => !needed.has(path))
    if (unused.length === 0) return
    await this.#drift.during(0, () => this.#writer.removeChains(unused))
    for (const path of unused) this.#chains.delete(path)
  }

  /** The data of one element of a set; undefined if it is not there. May be called during a sync. */
  lookUp(path: SetPath, key: string): Promise<string | undefined> {
    return this.#sideWriter.lookUp(path, key)
  }

  /** What a set of ours holds. May be called during a sync. */
  readBeside(path: SetPath): Promise<ElementMap> {
    return this.#sideWriter.read(path)
  }

  /** The counters of the elements of a counting set. May be called during a sync. */
  packetsBeside(path: SetPath): Promise<ReadonlyMap<string, number>> {
    return this.#sideWriter.readPackets(path)
  }

  /** Removes elements of sets that packets write, all or none. May be called during a sync. */
  async removeBeside(remove: Elements): Promise<void> {
    const transaction = { remove, add: new Map() }
    await this.#drift.during(countElements(remove), () => this.#sideWriter.commit(transaction, []))
  }

  /** Why our tables may differ from what we wrote; undefined if nobody changed them. Returns each reason once. */
  drift(): string | undefined {
    return this.#drift.take()
  }

  close(): void {
    this.#drift.close()
    this.#writer.close()
    this.#sideWriter.close()
  }
}
