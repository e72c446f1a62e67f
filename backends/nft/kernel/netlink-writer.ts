import { KpngError } from '@kpng/api'
import { acknowledgementIn, dump, errnoText, type Libc, MessageBuffer, NLM_F_DUMP } from '@kpng/linux'
import {
  type ChainPath,
  chainsNeeded,
  type ElementMap,
  type Elements,
  isEmpty,
  operationCount,
  type Transaction,
} from '../elements/element.js'
import type { TableFamily } from '../rules/family.js'
import { type SetPath, setPath, shapeOf, shapesIn, shapesWith, splitSetPath } from '../rules/names.js'
import type { RuleSettings } from '../rules/skeleton.js'
import { NftSocket } from './nft-socket.js'
import { readOutline, type TableOutline } from './outline.js'
import { writeRememberChain } from './remember-chain.js'
import { ElementsReader, type ElementTimes, writeElements, writeElementsRequest } from './set-elements.js'
import {
  type TableAt,
  writeChainRemoval,
  writeMarker,
  writeSkeleton,
  writeTable,
  writeTableRemoval,
} from './skeleton-messages.js'

const ENOENT = 2

/** How often a set is read again if the ruleset changed during the dump. */
const dumpAttempts = 5

/** Elements of a set that the kernel writes itself, with the time at which each expires. */
export interface TimedElements {
  readonly elements: ElementMap
  readonly times: ReadonlyMap<string, ElementTimes>
}

/** Writes our tables to the kernel and reads them back. Calls are processed one after the other. */
export class NetlinkWriter {
  readonly #socket: NftSocket
  readonly #settings: RuleSettings

  constructor(libc: Libc, settings: RuleSettings) {
    this.#socket = new NftSocket(libc)
    this.#settings = settings
  }

  /** The netlink port under which the kernel reports our changes. */
  get port(): number {
    return this.#socket.port
  }

  /** Makes tables that do not exist, without elements. Until elements are added, all packets pass as if there were no table. */
  async make(families: readonly TableFamily[]): Promise<void> {
    await this.#socket.transact('new tables', (buffer) => {
      for (const family of families) writeSkeleton(buffer, this.#tableOf(family), this.#settings)
    })
  }

  /** Replaces tables by new ones with these elements, in one transaction. */
  async replace(
    families: readonly TableFamily[],
    elements: Elements,
    remembered: ReadonlyMap<SetPath, TimedElements>,
  ): Promise<void> {
    await this.#socket.transact('the replacement of tables', (buffer) => {
      for (const family of families) {
        // Adding first makes the removal succeed if there is no such table.
        writeTable(buffer, this.#tableOf(family))
        writeTableRemoval(buffer, this.#tableOf(family))
        writeSkeleton(buffer, this.#tableOf(family), this.#settings)
      }
      for (const chain of chainsNeeded(elements)) writeRememberChain(buffer, this.#table, chain)
      for (const [path, map] of elements) writeElements(buffer, 'add', this.#at(path), map)
      for (const [path, timed] of remembered) {
        writeElements(buffer, 'add', this.#at(path), timed.elements, timed.times)
      }
    })
  }

  /** Puts sets without elements into our tables, by family. Their names say something. */
  async mark(names: ReadonlyMap<TableFamily, string>): Promise<void> {
    await this.#socket.transact('the marks of new tables', (buffer) => {
      for (const [family, name] of names) writeMarker(buffer, this.#tableOf(family), name)
    })
  }

  /** All or nothing; rejects if nothing was written. Chains that elements refer to are made in the same transaction. */
  async commit(transaction: Transaction, newChains: readonly ChainPath[]): Promise<void> {
    if (isEmpty(transaction) && newChains.length === 0) return
    await this.#socket.transact(`a transaction of ${operationCount(transaction)} elements`, (buffer) => {
      for (const chain of newChains) writeRememberChain(buffer, this.#table, chain)
      for (const [path, map] of transaction.remove) writeElements(buffer, 'delete', this.#at(path), map)
      for (const [path, map] of transaction.add) writeElements(buffer, 'add', this.#at(path), map)
    })
  }

  /** Removes chains that no element refers to any more, all or none. */
  async removeChains(chains: readonly ChainPath[]): Promise<void> {
    await this.#socket.transact(`to remove ${chains.length} chains`, (buffer) => {
      for (const path of chains) {
        const { family, name } = splitSetPath(path)
        writeChainRemoval(buffer, this.#tableOf(family), name)
      }
    })
  }

  /** What is in a set of ours, which must exist. A set that packets write may change while it is read. */
  async read(path: SetPath): Promise<ElementMap> {
    return (await this.#read(path)).finish()
  }

  /** The data of one element, '' in a set; undefined if it is not there. */
  lookUp(path: SetPath, key: string): Promise<string | undefined> {
    return this.#socket.inTurn(async (socket, sequence) => {
      const request = new MessageBuffer(sequence)
      writeElementsRequest(request, this.#at(path), 0, key)
      await socket.send(request.bytes)
      const reader = new ElementsReader(path)
      for (const message of socket.receive()) {
        const errno = acknowledgementIn(message)?.errno ?? 0
        if (errno === ENOENT) return undefined
        if (errno !== 0) throw new KpngError('unavailable', `The set "${path}" cannot be read: ${errnoText(errno)}.`)
        reader.read(message)
      }
      return reader.finish().get(key)
    })
  }

  async readTimed(path: SetPath): Promise<TimedElements> {
    const reader = await this.#read(path)
    return { elements: reader.finish(), times: reader.times }
  }

  /** The counters of the elements of a counting set. */
  async readPackets(path: SetPath): Promise<ReadonlyMap<string, number>> {
    return (await this.#read(path)).packets
  }

  /** What is in all our sets of a family, except those that packets write. The table must be ours. */
  async readAll(family: TableFamily): Promise<Elements> {
    const elements: Elements = new Map()
    for (const [name, { dynamic }] of shapesIn(family, shapesWith(this.#settings))) {
      const map = dynamic ? undefined : await this.read(setPath(family, name))
      if (map && map.size > 0) elements.set(setPath(family, name), map)
    }
    return elements
  }

  /** Undefined if there is no table of ours. Rejects if the table changed during every attempt to read it. */
  outline(family: TableFamily): Promise<TableOutline | undefined> {
    return this.#socket.inTurn((socket) => readOutline(socket, this.#tableOf(family)))
  }

  close(): void {
    this.#socket.close()
  }

  get #table(): string {
    return this.#settings.tableName
  }

  #at = (path: SetPath) => ({ table: this.#table, path })

  #tableOf = (family: TableFamily): TableAt => ({ family, name: this.#table })

  async #read(path: SetPath): Promise<ElementsReader> {
    for (let attempt = 1; attempt <= dumpAttempts; attempt++) {
      const reader = await this.#dump(path)
      if (reader) return reader
    }
    throw new KpngError('unavailable', `The set "${path}" changed each time it was read. kpng tries again later.`)
  }

  /** Undefined if the set changed meanwhile. */
  #dump(path: SetPath): Promise<ElementsReader | undefined> {
    return this.#socket.inTurn(async (socket, sequence) => {
      const request = new MessageBuffer(sequence)
      writeElementsRequest(request, this.#at(path), NLM_F_DUMP)
      const reader = new ElementsReader(path)
      const isWhole = await dump(socket, request.bytes, (message) => {
        const failure = acknowledgementIn(message)
        if (!failure) reader.read(message)
        else if (failure.errno !== 0) {
          throw new KpngError('unavailable', `The set "${path}" cannot be read: ${errnoText(failure.errno)}.`)
        }
      })
      // The kernel may write to such a set at any moment, so a consistent list would be luck.
      return isWhole || shapeOf(splitSetPath(path).name).dynamic ? reader : undefined
    })
  }
}
