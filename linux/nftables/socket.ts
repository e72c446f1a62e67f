import { KpngError } from '@kpng/api'
import { rightsAdvice } from '../capabilities.js'
import type { Libc } from '../libc.js'
import { MessageBuffer } from '../netlink/buffer.js'
import { EPERM, errnoText, NETLINK_NETFILTER, NLM_F_ACK } from '../netlink/constants.js'
import { type Acknowledgement, acknowledgementIn, attributesOf, findAttribute } from '../netlink/messages.js'
import { AnswersLost, NetlinkSocket } from '../netlink/socket.js'
import { NFNL_SUBSYS_NFTABLES, nftMessage } from './constants.js'

/** The type of a message. */
export const nftType = (message: number): number => (NFNL_SUBSYS_NFTABLES << 8) | message

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

const GENERATION_ID = 1

/**
 * The number of transactions on all nftables tables of this network namespace, by any program. A 32-bit number that wraps around.
 * @param socket of NETLINK_NETFILTER
 */
export async function readNftGeneration(socket: NetlinkSocket): Promise<number> {
  const request = new MessageBuffer(1)
  request.beginNetfilter(nftType(nftMessage.GETGEN), 0, 0)
  request.end()
  await socket.send(request.bytes)
  for (const message of socket.receive()) {
    const id = message.type === nftType(nftMessage.NEWGEN) && findAttribute(attributesOf(message), GENERATION_ID)
    if (id) return id.readUInt32BE(0)
  }
  throw new KpngError('unavailable', 'The kernel did not return the generation of its tables. kpng tries again later.')
}
