import { KpngError, messageOf } from '@kpng/api'
import type { SyncStep } from '@kpng/client'
import type { Family } from './address.js'
import { countElements, type Elements } from './element.js'
import { counterSets, type SetPath, setPath, shapesWith, tableName } from './names.js'
import { DriftWatch } from './netlink/drift-watch.js'
import { type Libc, loadLibc } from './netlink/libc.js'
import { NetlinkWriter } from './netlink/writer.js'
import { NftCommand } from './nft-command.js'
import { NftWriter, packetsIn } from './nft-writer.js'
import type { Settings } from './options.js'
import { chainsNeeded } from './render.js'
import { canWriteRememberChains, checkRequirements, usableFamilies } from './requirements.js'
import { asStep } from './steps.js'
import { Tables, withoutChainMaps } from './tables.js'
import { operationCount, type Transaction } from './transaction.js'
import type { ChainPath, Writer } from './writer.js'

/** From here on the notifications of our own transaction would only overflow the socket that listens. */
const pauseWatchFrom = 1000

/** Our tables in this machine's kernel, through whichever writer works here. */
export class Kernel {
  readonly families: readonly Family[]
  readonly affinityFamilies: readonly Family[]
  readonly libc: Libc | undefined
  readonly #writer: Writer
  readonly #tables: Tables
  readonly #nft: NftCommand
  readonly #watch: DriftWatch | undefined
  /** Chains beyond the skeleton that exist. */
  #chains = new Set<ChainPath>()
  /** A change by somebody else that was come across while something else was done. */
  #noticed: string | undefined

  private constructor(parts: {
    families: readonly Family[]
    affinityFamilies: readonly Family[]
    libc: Libc | undefined
    writer: Writer
    tables: Tables
    nft: NftCommand
  }) {
    this.families = parts.families
    this.affinityFamilies = parts.affinityFamilies
    this.libc = parts.libc
    this.#writer = parts.writer
    this.#tables = parts.tables
    this.#nft = parts.nft
    const ownPort = parts.writer instanceof NetlinkWriter ? parts.writer.port : undefined
    this.#watch = parts.libc && new DriftWatch(parts.libc, ownPort)
  }

  /** Checks the machine and opens what is needed. The error says what is missing. */
  static async open(settings: Settings): Promise<Kernel> {
    const { log } = settings
    const nft = new NftCommand(settings.nftCommand)
    const families = usableFamilies(settings, log)
    await checkRequirements(nft, families, settings)
    const libc = await libcFor(settings)
    const writer =
      libc && settings.writer !== 'nft' ? new NetlinkWriter(libc, shapesWith(settings)) : new NftWriter(nft)
    const affinityFamilies: Family[] = []
    for (const family of families) {
      if (writer.name === 'netlink' || (await canWriteRememberChains(nft, family, settings)))
        affinityFamilies.push(family)
      else log.warn('This nft cannot make session affinity for a family; install 1.0.7 or newer, or koffi', { family })
    }
    log.info('nftables is ready', { writer: writer.name, families: families.join(' ') })
    return new Kernel({ families, affinityFamilies, libc, writer, tables: new Tables(nft, families, settings), nft })
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
    this.#watch?.pause()
    this.#noticed = undefined
    const { states, extraChains } = await this.#tables.inspect(this.#writer)
    const inState = (state: string) => this.families.filter((family) => states.get(family) === state)
    const others = inState('other')
    this.#chains = new Set([...extraChains].filter((path) => !others.some((family) => path.startsWith(`${family} `))))
    const missing = inState('missing')
    if (missing.length > 0) await asStep(steps, ...byCommand(0), () => this.#tables.make(missing))
    // Before anything is read, so that nothing that others do afterwards is missed.
    this.#watch?.listen()
    const known: Elements = new Map()
    for (const family of inState('ours')) {
      for (const [path, map] of await this.#writer.readAll(family)) known.set(path, map)
    }
    const all = wanted(known)
    if (others.length > 0) {
      const brought = withoutChainMaps(all, others)
      await asStep(steps, ...byCommand(countElements(brought)), () => this.#tables.replace(others, all))
      this.#watch?.ignore()
      for (const [path, map] of brought) known.set(path, map)
    }
    return { known, wanted: all }
  }

  /** All of it or nothing. Chains that elements go to are made with them. */
  async commit(transaction: Transaction, steps?: SyncStep[]): Promise<void> {
    const operations = operationCount(transaction)
    if (operations >= pauseWatchFrom) this.#watch?.pause()
    const newChains = [...chainsNeeded(transaction.add)].filter(
      (path) => !this.#chains.has(path as ChainPath),
    ) as ChainPath[]
    // Nothing reaches the kernel for an empty one.
    await asStep(operations > 0 ? steps : undefined, ...transactionStep(operations, this.#writer.name), () =>
      this.#writer.commit(transaction, newChains),
    )
    for (const path of newChains) this.#chains.add(path)
    // What a command did on our behalf looks like somebody else's doing.
    if (this.#writer.name === 'nft') this.#watch?.ignore()
    // We are told of our own changes too; under load they would fill the socket's buffer until the next look at it.
    else this.#noticed ??= this.#watch?.check()
  }

  read: Writer['read'] = (path) => this.#writer.read(path)

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

  /** From now on, changes by others count. */
  listen(): void {
    this.#watch?.listen()
  }

  /** Why our tables may not be what we made of them. */
  async drift(): Promise<string | undefined> {
    if (this.#watch) {
      const reason = this.#noticed ?? this.#watch.check()
      this.#noticed = undefined
      return reason
    }
    const { states } = await this.#tables.inspect(this.#writer)
    return [...states.values()].every((state) => state === 'ours') ? undefined : 'the table is not what it was'
  }

  /** Whether looking for drift costs next to nothing. */
  get isDriftCheap(): boolean {
    return this.#watch !== undefined
  }

  close(): void {
    this.#watch?.pause()
    this.#writer.close()
  }
}

const transactionStep = (operations: number, writer: Writer['name']) =>
  ['transaction', { 'kpng.operations': operations, 'kpng.writer': writer }] as const

/** Rules always come from the nft command. */
const byCommand = (operations: number) => transactionStep(operations, 'nft')

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
