import { KpngError, messageOf } from '@kpng/api'
import type { SyncStep } from '@kpng/client'
import { type Libc, loadLibc } from '@kpng/linux'
import type { Family } from './address.js'
import { Drift, type OwnWork } from './drift.js'
import { countElements, type Elements } from './element.js'
import { counterSets, type SetPath, setPath, shapesWith, tableName } from './names.js'
import { DriftWatch } from './netlink/drift-watch.js'
import { NetlinkWriter } from './netlink/writer.js'
import { NftCommand } from './nft-command.js'
import { NftWriter, packetsIn } from './nft-writer.js'
import type { Settings } from './options.js'
import { chainsNeeded } from './render.js'
import { canWriteRememberChains, checkRequirements, usableFamilies } from './requirements.js'
import { asStep } from './steps.js'
import { Tables, transactionsToMake, withoutChainMaps } from './tables.js'
import { operationCount, type Transaction } from './transaction.js'
import type { ChainPath, Writer } from './writer.js'

/** Our tables in this machine's kernel, through whichever writer works here. */
export class Kernel {
  readonly families: readonly Family[]
  readonly affinityFamilies: readonly Family[]
  readonly libc: Libc | undefined
  readonly #writer: Writer
  /** For what goes on beside syncs: a socket carries one conversation at a time. */
  readonly #sideWriter: Writer
  readonly #tables: Tables
  readonly #nft: NftCommand
  readonly #drift: Drift | undefined
  /** Chains beyond the skeleton that exist. */
  #chains = new Set<ChainPath>()

  private constructor(parts: {
    families: readonly Family[]
    affinityFamilies: readonly Family[]
    libc: Libc | undefined
    writer: Writer
    sideWriter: Writer
    tables: Tables
    nft: NftCommand
  }) {
    this.families = parts.families
    this.affinityFamilies = parts.affinityFamilies
    this.libc = parts.libc
    this.#writer = parts.writer
    this.#sideWriter = parts.sideWriter
    this.#tables = parts.tables
    this.#nft = parts.nft
    const writers = [parts.writer, parts.sideWriter]
    const ownPorts = writers.flatMap((writer) => (writer instanceof NetlinkWriter ? [writer.port] : []))
    this.#drift = parts.libc && new Drift(new DriftWatch(parts.libc, ownPorts))
  }

  /** Checks the machine and opens what is needed. The error says what is missing. */
  static async open(settings: Settings): Promise<Kernel> {
    const { log } = settings
    const nft = new NftCommand(settings.nftCommand)
    const families = usableFamilies(settings, log)
    await checkRequirements(nft, families, settings)
    const libc = await libcFor(settings)
    const newWriter = () =>
      libc && settings.writer !== 'nft' ? new NetlinkWriter(libc, shapesWith(settings)) : new NftWriter(nft)
    const writer = newWriter()
    const affinityFamilies: Family[] = []
    for (const family of families) {
      if (writer.name === 'netlink' || (await canWriteRememberChains(nft, family, settings)))
        affinityFamilies.push(family)
      else log.warn('This nft cannot make session affinity for a family; install 1.0.7 or newer, or koffi', { family })
    }
    log.info('nftables is ready', { writer: writer.name, families: families.join(' ') })
    const tables = new Tables(nft, families, settings)
    return new Kernel({ families, affinityFamilies, libc, writer, sideWriter: newWriter(), tables, nft })
  }

  get writerName(): Writer['name'] {
    return this.#writer.name
  }

  /**
   * Makes our tables what they should be, and returns what their sets hold then. Tables that are ours stay as they are; those of
   * another version are replaced together with their elements, which is what `wanted` works out from what was found.
   */
  async adopt(
    wanted: (known: Elements) => Elements,
    steps?: SyncStep[],
  ): Promise<{ known: Elements; wanted: Elements }> {
    // Before anything is looked at, so that nothing that others do afterwards is missed.
    this.#drift?.restart()
    const { states, extraChains } = await this.#tables.inspect(this.#writer)
    const inState = (state: string) => this.families.filter((family) => states.get(family) === state)
    const others = inState('other')
    this.#chains = new Set([...extraChains].filter((path) => !others.some((family) => path.startsWith(`${family} `))))
    const missing = inState('missing')
    if (missing.length > 0) await this.#makeByCommand(0, steps, () => this.#tables.make(missing, this.#writer))
    const known: Elements = new Map()
    for (const family of inState('ours')) {
      for (const [path, map] of await this.#writer.readAll(family)) known.set(path, map)
    }
    const all = wanted(known)
    if (others.length > 0) {
      const brought = withoutChainMaps(all, others)
      const replace = () => this.#tables.replace(others, all, this.#writer)
      await this.#makeByCommand(countElements(brought), steps, replace)
      for (const [path, map] of brought) known.set(path, map)
    }
    return { known, wanted: all }
  }

  /** Rules always come from the nft command. */
  async #makeByCommand(operations: number, steps: SyncStep[] | undefined, make: () => Promise<void>): Promise<void> {
    const own = { transactions: transactionsToMake, byCommand: true, operations }
    await asStep(steps, ...transactionStep(operations, 'nft'), () => this.#during(own, make))
  }

  /** All of it or nothing. Chains that elements go to are made with them. */
  async commit(transaction: Transaction, steps?: SyncStep[]): Promise<void> {
    const operations = operationCount(transaction)
    // Nothing reaches the kernel for an empty one.
    if (operations === 0) return
    const newChains = ([...chainsNeeded(transaction.add)] as ChainPath[]).filter((path) => !this.#chains.has(path))
    await asStep(steps, ...transactionStep(operations, this.#writer.name), () =>
      this.#during(this.#ownWork(operations), () => this.#writer.commit(transaction, newChains)),
    )
    for (const path of newChains) this.#chains.add(path)
  }

  /** Takes the chains away that none of these elements, which are all there are, goes to. */
  async removeUnusedChains(elements: Elements): Promise<void> {
    const needed = chainsNeeded(elements)
    const unused = [...this.#chains].filter((path) => !needed.has(path))
    if (unused.length === 0) return
    await this.#during(this.#ownWork(0), () => this.#writer.removeChains(unused))
    for (const path of unused) this.#chains.delete(path)
  }

  /** What a set that packets write holds. May be called during a sync. */
  readBeside: Writer['read'] = (path) => this.#sideWriter.read(path)

  /** Takes away elements of sets that packets write, all or none. May be called during a sync. */
  async removeBeside(remove: Elements): Promise<void> {
    const transaction = { remove, add: new Map() }
    await this.#during(this.#ownWork(countElements(remove)), () => this.#sideWriter.commit(transaction, []))
  }

  #ownWork = (operations: number): OwnWork => ({
    transactions: 1,
    byCommand: this.#writer.name === 'nft',
    operations,
  })

  #during<Result>(own: OwnWork, work: () => Promise<Result>): Promise<Result> {
    return this.#drift ? this.#drift.during(own, work) : work()
  }

  /** What the sets that count have counted. By the command: the writer's socket may be in the middle of a sync. */
  async packets(): Promise<Map<SetPath, Map<string, number>>> {
    const read = new Map<SetPath, Map<string, number>>()
    for (const family of this.families) {
      for (const name of counterSets) {
        read.set(setPath(family, name), packetsIn(await this.#nft.list('set', family, tableName, name)))
      }
    }
    return read
  }

  /** Why our tables may not be what we made of them. */
  async drift(): Promise<string | undefined> {
    if (this.#drift) return this.#drift.take()
    const { states } = await this.#tables.inspect(this.#writer)
    return [...states.values()].every((state) => state === 'ours') ? undefined : 'the table is not what it was'
  }

  /** Whether looking for drift costs next to nothing. */
  get isDriftCheap(): boolean {
    return this.#drift !== undefined
  }

  close(): void {
    this.#drift?.close()
    this.#writer.close()
    this.#sideWriter.close()
  }
}

const transactionStep = (operations: number, writer: Writer['name']) =>
  ['transaction', { 'kpng.operations': operations, 'kpng.writer': writer }] as const

async function libcFor({ writer, log }: Settings): Promise<Libc | undefined> {
  try {
    return await loadLibc()
  } catch (error) {
    if (writer === 'netlink') {
      throw new KpngError('unsupported', `The netlink writer cannot be used. ${messageOf(error)}`, { cause: error })
    }
    if (writer === 'auto')
      log.warn('The nft command is run for each change, which is slower', { reason: messageOf(error) })
    return undefined
  }
}
