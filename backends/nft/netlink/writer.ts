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
import type { Family } from '../address.js'
import type { ElementMap, Elements } from '../element.js'
import { type SetPath, type SetShape, setPath, setShapes, shapeOf, shapesIn, splitSetPath } from '../names.js'
import { isEmpty, operationCount, type Transaction } from '../transaction.js'
import type { ChainPath, TableOutline, Writer } from '../writer.js'
import { NFNL_SUBSYS_NFTABLES } from './constants.js'
import { readOutline } from './outline.js'
import { writeChainRemoval, writeRememberChain } from './remember-chain.js'
import { ElementsReader, writeElements, writeElementsRequest } from './set-elements.js'

/** A dump during which the ruleset changed is read again, so many times. */
const dumpAttempts = 5

/** Speaks to the kernel's nf_tables directly. */
export class NetlinkWriter implements Writer {
  readonly name = 'netlink'
  readonly #socket: NetlinkSocket
  readonly #shapes: ReadonlyMap<string, SetShape>
  #sequence = 1

  /** @param shapes the sets that our tables have */
  constructor(libc: Libc, shapes = setShapes) {
    this.#socket = new NetlinkSocket(libc, NETLINK_NETFILTER)
    this.#shapes = shapes
  }

  /** How the kernel names who made our changes. */
  get port(): number {
    return this.#socket.port
  }

  async commit(transaction: Transaction, newChains: readonly ChainPath[]): Promise<void> {
    if (isEmpty(transaction) && newChains.length === 0) return
    await this.#transact(`a transaction of ${operationCount(transaction)} elements`, (buffer) => {
      for (const path of newChains) {
        const { family, name } = splitSetPath(path)
        writeRememberChain(buffer, family, name)
      }
      for (const [path, map] of transaction.remove) writeElements(buffer, 'delete', path, map)
      for (const [path, map] of transaction.add) writeElements(buffer, 'add', path, map)
    })
  }

  async removeChains(chains: readonly ChainPath[]): Promise<void> {
    await this.#transact(`to remove ${chains.length} chains`, (buffer) => {
      for (const path of chains) {
        const { family, name } = splitSetPath(path)
        writeChainRemoval(buffer, family, name)
      }
    })
  }

  /** @param what is done, for the sentence that says that it was not */
  async #transact(what: string, write: (buffer: MessageBuffer) => void): Promise<void> {
    const buffer = new MessageBuffer(this.#sequence, 16 * 1024)
    buffer.beginBatch(NFNL_SUBSYS_NFTABLES)
    write(buffer)
    // The kernel answers only what it is asked to, and failures. With an answer to the last message there is one in any case.
    buffer.addFlags(NLM_F_ACK)
    const last = buffer.sequence
    buffer.endBatch(NFNL_SUBSYS_NFTABLES)
    this.#sequence = (buffer.sequence + 1) % 0x4000_0000
    this.#drain()
    await this.#socket.send(buffer.bytes)
    this.#expectAcknowledgement(last, what)
  }

  /** Nothing that was said about an earlier request may be taken for an answer to the next. */
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
        `The kernel refused ${what}: ${errnoText(failure.errno)}${said}. Nothing was changed; it is tried again from what the kernel holds.`,
      )
    }
    if (!done) throw new KpngError('refused', `The kernel did not confirm ${what}.`)
  }

  async read(path: SetPath): Promise<ElementMap> {
    for (let attempt = 1; ; attempt++) {
      const elements = await this.#dump(path)
      if (elements) return elements
      if (attempt === dumpAttempts) {
        throw new KpngError('unavailable', `The set "${path}" changed each time it was read. It is tried again later.`)
      }
    }
  }

  async readAll(family: Family): Promise<Elements> {
    const elements: Elements = new Map()
    for (const [name, { dynamic }] of shapesIn(family, this.#shapes)) {
      const map = dynamic ? undefined : await this.read(setPath(family, name))
      if (map && map.size > 0) elements.set(setPath(family, name), map)
    }
    return elements
  }

  /** Undefined when the set changed meanwhile. */
  async #dump(path: SetPath): Promise<ElementMap | undefined> {
    const request = new MessageBuffer(this.#sequence++)
    writeElementsRequest(request, path, NLM_F_DUMP)
    this.#drain()
    const reader = new ElementsReader(path)
    const isWhole = await dump(this.#socket, request.bytes, (message) => {
      const failure = acknowledgementIn(message)
      if (!failure) reader.read(message)
      else if (failure.errno !== 0) {
        throw new KpngError('unavailable', `The set "${path}" cannot be read: ${errnoText(failure.errno)}.`)
      }
    })
    // What packets write changes at any moment, and the kernel does not tell: a whole list would be luck.
    return isWhole || shapeOf(splitSetPath(path).name).dynamic ? reader.finish() : undefined
  }

  async outline(family: Family): Promise<TableOutline | undefined> {
    this.#drain()
    return readOutline(this.#socket, family)
  }

  close(): void {
    this.#socket.close()
  }
}
