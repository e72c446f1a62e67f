import { KpngError } from '@kpng/api'
import {
  type Acknowledgement,
  AnswersLost,
  acknowledgementIn,
  EPERM,
  errnoText,
  type Libc,
  MessageBuffer,
  NETLINK_NETFILTER,
  NetlinkSocket,
  NLM_F_ACK,
  rightsAdvice,
} from '@kpng/linux'
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
import { type SetPath, setPath, shapesIn, shapesWith, splitSetPath } from '../rules/names.js'
import type { RuleSettings } from '../rules/skeleton.js'
import { NFNL_SUBSYS_NFTABLES } from './constants.js'
import { readOutline, type TableOutline } from './outline.js'
import { writeRememberChain } from './remember-chain.js'
import { type ElementTimes, writeElements } from './set-elements.js'
import { lookUpElement, readSet } from './set-reader.js'
import {
  type TableAt,
  writeChainRemoval,
  writeMarker,
  writeSkeleton,
  writeTable,
  writeTableRemoval,
} from './skeleton-messages.js'

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
    return (await readSet(this.#socket, this.#at(path))).finish()
  }

  /** The data of one element, '' in a set; undefined if it is not there. */
  lookUp(path: SetPath, key: string): Promise<string | undefined> {
    return lookUpElement(this.#socket, this.#at(path), key)
  }

  async readTimed(path: SetPath): Promise<TimedElements> {
    const reader = await readSet(this.#socket, this.#at(path))
    return { elements: reader.finish(), times: reader.times }
  }

  /** The counters of the elements of a counting set. */
  async readPackets(path: SetPath): Promise<ReadonlyMap<string, number>> {
    return (await readSet(this.#socket, this.#at(path))).packets
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
}

/** A netlink socket to nftables. It carries one conversation at a time: calls are processed one after the other. */
export class NftSocket {
  readonly #socket: NetlinkSocket
  #sequence = 1
  #last: Promise<unknown> = Promise.resolve()

  constructor(libc: Libc) {
    this.#socket = new NetlinkSocket(libc, NETLINK_NETFILTER)
  }

  /** The netlink port under which the kernel reports our changes. */
  get port(): number {
    return this.#socket.port
  }

  /**
   * Sends messages as one transaction: all or nothing. Rejects if nothing was changed.
   * @param what names the work in the error message
   */
  transact(what: string, write: (buffer: MessageBuffer) => void): Promise<void> {
    return this.inTurn(async () => {
      const last = await this.#send(write, true)
      const { failure, isDone } = this.#answer(last)
      if (failure) throw refused(what, failure)
      if (!isDone) throw new KpngError('refused', `The kernel did not confirm ${what}.`)
    })
  }

  /** Why the kernel would refuse these messages; undefined if it would accept them. Changes nothing. */
  whyRefused(write: (buffer: MessageBuffer) => void): Promise<string | undefined> {
    return this.inTurn(async () => {
      // The kernel works through a transaction without an end, and then takes everything back.
      const last = await this.#send(write, false)
      const { failure, isDone } = this.#answer(last)
      if (failure) return reasonOf(failure)
      return isDone ? undefined : 'no answer'
    })
  }

  /** Uses the socket alone, without answers that are left of earlier requests. */
  inTurn<Result>(work: (socket: NetlinkSocket, sequence: number) => Promise<Result>): Promise<Result> {
    const begin = () => {
      this.#drain()
      return work(this.#socket, this.#sequence++)
    }
    const turn = this.#last.then(begin, begin)
    this.#last = turn
    return turn
  }

  close(): void {
    this.#socket.close()
  }

  /** Returns the number of the last message. */
  async #send(write: (buffer: MessageBuffer) => void, isCommitted: boolean): Promise<number> {
    const buffer = new MessageBuffer(this.#sequence, 16 * 1024)
    buffer.beginBatch(NFNL_SUBSYS_NFTABLES)
    write(buffer)
    // The kernel acknowledges only messages that ask for it, and failures. The last message asks, so there is always an answer.
    buffer.addFlags(NLM_F_ACK)
    const last = buffer.sequence
    if (isCommitted) buffer.endBatch(NFNL_SUBSYS_NFTABLES)
    this.#sequence = (buffer.sequence + 1) % 0x4000_0000
    await this.#socket.send(buffer.bytes)
    return last
  }

  #answer(last: number): { failure: Acknowledgement | undefined; isDone: boolean } {
    let isDone = false
    let failure: Acknowledgement | undefined
    const read = () => {
      for (const message of this.#socket.receive()) {
        const answer = acknowledgementIn(message)
        if (answer && answer.errno !== 0) failure ??= answer
        else if (answer?.sequence === last) isDone = true
      }
    }
    try {
      read()
    } catch (error) {
      if (!(error instanceof AnswersLost)) throw error
      // The kernel reports each message that fails. The first reports are still there.
      read()
    }
    return { failure, isDone }
  }

  #drain(): void {
    try {
      for (const _ of this.#socket.receive());
    } catch (error) {
      if (!(error instanceof AnswersLost)) throw error
    }
  }
}

const reasonOf = ({ errno, text }: Acknowledgement): string => errnoText(errno) + (text ? ` (${text})` : '')

function refused(what: string, failure: Acknowledgement): KpngError {
  const next =
    failure.errno === EPERM
      ? rightsAdvice('CAP_NET_ADMIN')
      : 'Nothing was changed; kpng compares everything with the kernel and tries again.'
  return new KpngError('refused', `The kernel refused ${what}: ${reasonOf(failure)}. ${next}`)
}
