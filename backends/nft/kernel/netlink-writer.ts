import { KpngError } from '@kpng/api'
import {
  type Acknowledgement,
  AnswersLost,
  acknowledgementIn,
  dump,
  errnoText,
  type Libc,
  MessageBuffer,
  NETLINK_NETFILTER,
  NetlinkSocket,
  NLM_F_ACK,
  NLM_F_DUMP,
} from '@kpng/linux'
import {
  type ChainPath,
  type ElementMap,
  type Elements,
  isEmpty,
  operationCount,
  type Transaction,
} from '../elements/element.js'
import type { TableFamily } from '../rules/family.js'
import { type SetPath, type SetShape, setPath, setShapes, shapeOf, shapesIn, splitSetPath } from '../rules/names.js'
import { NFNL_SUBSYS_NFTABLES } from './constants.js'
import { readOutline, type TableOutline } from './outline.js'
import { writeChainRemoval, writeRememberChain } from './remember-chain.js'
import { ElementsReader, type ElementTimes, writeElements, writeElementsRequest } from './set-elements.js'

const ENOENT = 2

/** How often a set is read again if the ruleset changed during the dump. */
const dumpAttempts = 5

/** Elements of a set that the kernel writes itself, with the time at which each expires. */
export interface TimedElements {
  readonly elements: ElementMap
  readonly times: ReadonlyMap<string, ElementTimes>
}

/** Writes elements to the kernel's tables and reads them back. Calls are processed one after the other. */
export class NetlinkWriter {
  readonly #socket: NetlinkSocket
  readonly #table: string
  readonly #shapes: ReadonlyMap<string, SetShape>
  #sequence = 1
  #last: Promise<unknown> = Promise.resolve()

  /** @param shapes the sets that our tables have */
  constructor(libc: Libc, table: string, shapes = setShapes) {
    this.#socket = new NetlinkSocket(libc, NETLINK_NETFILTER)
    this.#table = table
    this.#shapes = shapes
  }

  /** The netlink port under which the kernel reports our changes. */
  get port(): number {
    return this.#socket.port
  }

  /** All or nothing; rejects if nothing was written. Chains that elements refer to are made in the same transaction. */
  async commit(transaction: Transaction, newChains: readonly ChainPath[]): Promise<void> {
    if (isEmpty(transaction) && newChains.length === 0) return
    await this.#transact(`a transaction of ${operationCount(transaction)} elements`, (buffer) => {
      for (const chain of newChains) writeRememberChain(buffer, this.#table, chain)
      for (const [path, map] of transaction.remove) writeElements(buffer, 'delete', this.#at(path), map)
      for (const [path, map] of transaction.add) writeElements(buffer, 'add', this.#at(path), map)
    })
  }

  /** Adds elements to a set that packets write. */
  async addTimed(path: SetPath, { elements, times }: TimedElements): Promise<void> {
    if (elements.size === 0) return
    await this.#transact(`${elements.size} elements that expire`, (buffer) =>
      writeElements(buffer, 'add', this.#at(path), elements, times),
    )
  }

  /** Removes chains that no element refers to any more, all or none. */
  async removeChains(chains: readonly ChainPath[]): Promise<void> {
    await this.#transact(`to remove ${chains.length} chains`, (buffer) => {
      for (const chain of chains) writeChainRemoval(buffer, this.#table, chain)
    })
  }

  /** What is in a set of ours, which must exist. A set that packets write may change while it is read. */
  async read(path: SetPath): Promise<ElementMap> {
    return (await this.#read(path)).finish()
  }

  /** The data of one element, '' in a set; undefined if it is not there. */
  lookUp(path: SetPath, key: string): Promise<string | undefined> {
    return this.#inTurn(async () => {
      const request = new MessageBuffer(this.#sequence++)
      writeElementsRequest(request, this.#at(path), 0, key)
      this.#drain()
      await this.#socket.send(request.bytes)
      const reader = new ElementsReader(path)
      for (const message of this.#socket.receive()) {
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
    for (const [name, { dynamic }] of shapesIn(family, this.#shapes)) {
      const map = dynamic ? undefined : await this.read(setPath(family, name))
      if (map && map.size > 0) elements.set(setPath(family, name), map)
    }
    return elements
  }

  /** Undefined if there is no table of ours. Rejects if the table changed during every attempt to read it. */
  outline(family: TableFamily): Promise<TableOutline | undefined> {
    return this.#inTurn(async () => {
      this.#drain()
      return await readOutline(this.#socket, { family, name: this.#table })
    })
  }

  close(): void {
    this.#socket.close()
  }

  #at = (path: SetPath) => ({ table: this.#table, path })

  /** A socket carries one conversation at a time. */
  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#last.then(work, work)
    this.#last = turn
    return turn
  }

  /** @param what names the work in the error message */
  #transact(what: string, write: (buffer: MessageBuffer) => void): Promise<void> {
    return this.#inTurn(() => this.#transactNow(what, write))
  }

  async #transactNow(what: string, write: (buffer: MessageBuffer) => void): Promise<void> {
    const buffer = new MessageBuffer(this.#sequence, 16 * 1024)
    buffer.beginBatch(NFNL_SUBSYS_NFTABLES)
    write(buffer)
    // The kernel acknowledges only messages that ask for it, and failures. The last message asks, so there is always an answer.
    buffer.addFlags(NLM_F_ACK)
    const last = buffer.sequence
    buffer.endBatch(NFNL_SUBSYS_NFTABLES)
    this.#sequence = (buffer.sequence + 1) % 0x4000_0000
    this.#drain()
    await this.#socket.send(buffer.bytes)
    this.#expectAcknowledgement(last, what)
  }

  /** Removes old answers from the socket, so that none is taken for the answer to the next request. */
  #drain(): void {
    try {
      for (const _ of this.#socket.receive());
    } catch (error) {
      if (!(error instanceof AnswersLost)) throw error
    }
  }

  #expectAcknowledgement(last: number, what: string): void {
    let done = false
    let failure: Acknowledgement | undefined
    for (const message of this.#socket.receive()) {
      const answer = acknowledgementIn(message)
      if (!answer) continue
      if (answer.errno !== 0) failure ??= answer
      else if (answer.sequence === last) done = true
    }
    if (failure) {
      const said = failure.text ? ` (${failure.text})` : ''
      throw new KpngError(
        'refused',
        `The kernel refused ${what}: ${errnoText(failure.errno)}${said}. Nothing was changed; kpng compares everything with the kernel and tries again.`,
      )
    }
    if (!done) throw new KpngError('refused', `The kernel did not confirm ${what}.`)
  }

  #read(path: SetPath): Promise<ElementsReader> {
    return this.#inTurn(async () => {
      for (let attempt = 1; attempt <= dumpAttempts; attempt++) {
        const reader = await this.#dump(path)
        if (reader) return reader
      }
      throw new KpngError('unavailable', `The set "${path}" changed each time it was read. kpng tries again later.`)
    })
  }

  /** Undefined if the set changed meanwhile. */
  async #dump(path: SetPath): Promise<ElementsReader | undefined> {
    const request = new MessageBuffer(this.#sequence++)
    writeElementsRequest(request, this.#at(path), NLM_F_DUMP)
    this.#drain()
    const reader = new ElementsReader(path)
    const isWhole = await dump(this.#socket, request.bytes, (message) => {
      const failure = acknowledgementIn(message)
      if (!failure) reader.read(message)
      else if (failure.errno !== 0) {
        throw new KpngError('unavailable', `The set "${path}" cannot be read: ${errnoText(failure.errno)}.`)
      }
    })
    // The kernel may write to such a set at any moment, so a consistent list would be luck.
    return isWhole || shapeOf(splitSetPath(path).name).dynamic ? reader : undefined
  }
}
