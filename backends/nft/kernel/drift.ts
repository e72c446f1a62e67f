import {
  AnswersLost,
  attributesOf,
  findAttribute,
  type Libc,
  type Message,
  NETLINK_NETFILTER,
  NetlinkSocket,
  textOf,
} from '@kpng/linux'
import { NFNL_SUBSYS_NFTABLES, NFNLGRP_NFTABLES, nftMessage } from './constants.js'
import { readGeneration } from './generation.js'

/** From this many elements on, the notifications of our own transaction would only overflow the socket that listens. */
const unheardFrom = 1000

/** Work of ours that changes the tables. */
export interface OwnWork {
  /** Transactions that it makes. */
  readonly transactions: number
  /** Whether they are made by a command, which the kernel cannot tell from somebody else's. */
  readonly byCommand: boolean
  /** Elements that are written. */
  readonly operations: number
}

/**
 * Tells the changes of others to our tables from our own. Of ours, some bear the port of our writer; of those that commands make
 * it is known how many there are; and of those that are too large to be listened to, by how much they raise the generation of
 * the kernel's tables.
 */
export class Drift {
  readonly #watch: DriftWatch
  /** A change by somebody else that was come across while something else was done. */
  #noticed: string | undefined
  #ownTransactions = 0
  #commandsAtWork = 0
  /** Commands since the last look, each with a port of its own. */
  #commandsHeard = 0

  /** @param ownPorts the netlink ports of our writers */
  constructor(libc: Libc, tableName: string, ownPorts: readonly number[]) {
    this.#watch = new DriftWatch(libc, tableName, ownPorts)
  }

  /** From now on, changes by others count; earlier ones do not. */
  restart(): void {
    this.#noticed = undefined
    this.#watch.pause()
    this.#watch.listen()
  }

  /** Changes our tables. What others change meanwhile counts. */
  async during<Result>(own: OwnWork, work: () => Promise<Result>): Promise<Result> {
    return own.operations >= unheardFrom ? await this.#unheard(own, work) : await this.#heard(own, work)
  }

  async #heard<Result>({ transactions, byCommand }: OwnWork, work: () => Promise<Result>): Promise<Result> {
    if (byCommand) {
      this.#look()
      this.#commandsAtWork++
      this.#commandsHeard += transactions
    }
    try {
      const result = await work()
      this.#ownTransactions += transactions
      return result
    } finally {
      if (byCommand) this.#commandsAtWork--
      // We are told of our own changes too; under load they would fill the socket's buffer until the next look at it.
      this.#look()
    }
  }

  async #unheard<Result>({ transactions }: OwnWork, work: () => Promise<Result>): Promise<Result> {
    const generation = await this.#watch.generation()
    const ownBefore = this.#ownTransactions
    this.#look()
    this.#watch.pause()
    try {
      const result = await work()
      this.#ownTransactions += transactions
      return result
    } finally {
      this.#watch.listen()
      const seen = ((await this.#watch.generation()) - generation) >>> 0
      // Perhaps it was another table; but nobody listened.
      if (seen !== this.#ownTransactions - ownBefore)
        this.#noticed ??= 'somebody else changed tables during a large sync'
    }
  }

  /** Why our tables may not be what we made of them. Says it once. */
  take(): string | undefined {
    this.#look()
    const reason = this.#noticed
    this.#noticed = undefined
    return reason
  }

  /** While a command is at work, what is told may still be its. */
  #look(): void {
    if (this.#commandsAtWork > 0) return
    this.#noticed ??= this.#watch.check(this.#commandsHeard)
    this.#commandsHeard = 0
  }

  close(): void {
    this.#watch.close()
  }
}

/** A limit: memory is taken only by what waits to be read. */
const bufferBytes = 16 * 1024 * 1024

/** In every message about a thing in a table, whatever the thing is. */
const TABLE_NAME = 1

/**
 * Listens to what the kernel tells of changes to its tables, and notices those to ours that are not from us. States:
 * *listening*; *paused*, while we change so much that the notifications would only be thrown away.
 */
class DriftWatch {
  readonly #libc: Libc
  readonly #tableName: string
  readonly #ownPorts: readonly number[]
  #socket: NetlinkSocket | undefined
  /** Apart from the one that listens, on which an answer would have to be looked for among what is told. */
  #asking: NetlinkSocket | undefined

  /** @param ownPorts the netlink ports of our writers */
  constructor(libc: Libc, tableName: string, ownPorts: readonly number[]) {
    this.#tableName = tableName
    this.#libc = libc
    this.#ownPorts = ownPorts
  }

  listen(): void {
    if (this.#socket) return
    const socket = new NetlinkSocket(this.#libc, NETLINK_NETFILTER)
    socket.join(NFNLGRP_NFTABLES, bufferBytes)
    this.#socket = socket
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
    return readGeneration(this.#asking)
  }

  /**
   * Why our tables may not be what we made of them, or undefined. Looks at what was told since the last call.
   * @param commands the number of commands that changed our tables for us meanwhile, each from a port that we do not know
   */
  check(commands = 0): string | undefined {
    const ports = new Set<number>()
    try {
      for (const message of this.#socket?.receive() ?? []) {
        if (!this.#ownPorts.includes(message.port) && isAbout(message, this.#tableName)) ports.add(message.port)
      }
    } catch (error) {
      if (!(error instanceof AnswersLost)) throw error
      return 'changes came faster than they could be followed'
    }
    return ports.size > commands ? 'somebody else changed the table' : undefined
  }
}

function isAbout(message: Message, tableName: string): boolean {
  if (message.type >> 8 !== NFNL_SUBSYS_NFTABLES || (message.type & 0xff) === nftMessage.NEWGEN) return false
  const table = findAttribute(attributesOf(message), TABLE_NAME)
  return table !== undefined && textOf(table) === tableName
}
