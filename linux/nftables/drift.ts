import type { Libc } from '../libc.js'
import { NETLINK_NETFILTER } from '../netlink/constants.js'
import { attributesOf, findAttribute, type Message, textOf } from '../netlink/messages.js'
import { AnswersLost, NetlinkSocket } from '../netlink/socket.js'
import { NFNL_SUBSYS_NFTABLES, NFNLGRP_NFTABLES, nftMessage } from './constants.js'
import { readNftGeneration } from './socket.js'

/** The notifications of a transaction with more elements than this would overflow the socket that listens. */
const unheardFrom = 1000

/**
 * Distinguishes changes that others make to our tables from our own. Our own are recognised by the netlink port of the writer. Those
 * that are too large for notifications are recognised by how far they raise the generation of the kernel's tables.
 */
export class Drift {
  readonly #watch: DriftWatch
  readonly #onForeignChange: () => void
  /** A change by somebody else that was found during other work. */
  #noticed: string | undefined
  #ownTransactions = 0

  /**
   * @param ownPorts the netlink ports of our writers
   * @param onForeignChange is called as soon as the kernel reports a change by others; not again before `restart`
   */
  constructor(libc: Libc, tableName: string, ownPorts: readonly number[], onForeignChange: () => void) {
    this.#watch = new DriftWatch(libc, tableName, ownPorts, (reason) => this.#notice(reason))
    this.#onForeignChange = onForeignChange
  }

  /** From now on, changes by others count; earlier ones do not. */
  restart(): void {
    this.#noticed = undefined
    this.#watch.pause()
    this.#watch.listen()
  }

  /**
   * Changes our tables in one transaction. What others change meanwhile counts.
   * @param operations how many elements it writes
   */
  async during<Result>(operations: number, work: () => Promise<Result>): Promise<Result> {
    return operations >= unheardFrom ? await this.#unheard(work) : await this.#heard(work)
  }

  async #heard<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      const result = await work()
      this.#ownTransactions++
      return result
    } finally {
      // The kernel also reports our own changes. Under load they would fill the buffer of the socket before the next look.
      this.#look()
    }
  }

  async #unheard<Result>(work: () => Promise<Result>): Promise<Result> {
    const generation = await this.#watch.generation()
    const ownBefore = this.#ownTransactions
    this.#look()
    this.#watch.pause()
    try {
      const result = await work()
      this.#ownTransactions++
      return result
    } finally {
      this.#watch.listen()
      const seen = ((await this.#watch.generation()) - generation) >>> 0
      // It may have been another table, but notifications were off, so it counts as drift.
      if (seen !== this.#ownTransactions - ownBefore) this.#notice('somebody else changed tables during a large sync')
    }
  }

  /** Why our tables may differ from what we wrote. The same until `restart`. */
  reason(): string | undefined {
    this.#look()
    return this.#noticed
  }

  #look(): void {
    this.#watch.check()
  }

  #notice(reason: string): void {
    if (this.#noticed !== undefined) return
    this.#noticed = reason
    this.#onForeignChange()
  }

  close(): void {
    this.#watch.close()
  }
}

/** An upper limit. Only unread notifications take memory. */
const bufferBytes = 16 * 1024 * 1024

/** The attribute with the name of the table. It has this number in every kind of message. */
const TABLE_NAME = 1

/**
 * Listens to the kernel's notifications and notices changes to our tables that are not ours. States: *listening*; *paused*, while we
 * write so much that the notifications would be lost.
 */
class DriftWatch {
  readonly #libc: Libc
  readonly #tableName: string
  readonly #ownPorts: readonly number[]
  readonly #onDrift: (reason: string) => void
  #socket: NetlinkSocket | undefined
  /** A separate socket for requests: on the listening one, answers would be mixed with notifications. */
  #asking: NetlinkSocket | undefined

  /** @param onDrift is told why our tables may differ from what we wrote */
  constructor(libc: Libc, tableName: string, ownPorts: readonly number[], onDrift: (reason: string) => void) {
    this.#libc = libc
    this.#tableName = tableName
    this.#ownPorts = ownPorts
    this.#onDrift = onDrift
  }

  /** Where notifications cannot be passed on as they come, `check` finds them. */
  listen(): void {
    if (this.#socket) return
    const socket = new NetlinkSocket(this.#libc, NETLINK_NETFILTER)
    socket.join(NFNLGRP_NFTABLES, bufferBytes)
    this.#socket = socket
    const onLost = () => {
      this.#onDrift(lost)
      this.pause()
      this.listen()
    }
    socket.listen((messages) => this.#read(messages), onLost)
  }

  pause(): void {
    this.#socket?.close()
    this.#socket = undefined
  }

  close(): void {
    this.pause()
    this.#asking?.close()
    this.#asking = undefined
  }

  /** Grows by one with each transaction, of any program and in any table. */
  generation(): Promise<number> {
    this.#asking ??= new NetlinkSocket(this.#libc, NETLINK_NETFILTER)
    return readNftGeneration(this.#asking)
  }

  /** Reads the notifications that are there. */
  check(): void {
    try {
      if (this.#socket) this.#read(this.#socket.receive())
    } catch (error) {
      if (!(error instanceof AnswersLost)) throw error
      this.#onDrift(lost)
    }
  }

  #read(messages: Iterable<Message>): void {
    let isForeign = false
    for (const message of messages) {
      isForeign ||= !this.#ownPorts.includes(message.port) && isAbout(message, this.#tableName)
    }
    if (isForeign) this.#onDrift('somebody else changed the table')
  }
}

const lost = 'changes came faster than they could be followed'

function isAbout(message: Message, tableName: string): boolean {
  if (message.type >> 8 !== NFNL_SUBSYS_NFTABLES || (message.type & 0xff) === nftMessage.NEWGEN) return false
  const table = findAttribute(attributesOf(message), TABLE_NAME)
  return table !== undefined && textOf(table) === tableName
}
