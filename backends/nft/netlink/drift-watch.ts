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
import { tableName } from '../names.js'
import { NFNL_SUBSYS_NFTABLES, NFNLGRP_NFTABLES, nftMessage } from './constants.js'
import { readGeneration } from './generation.js'

/** A limit, not a need: memory is taken only by what waits to be read. */
const bufferBytes = 16 * 1024 * 1024

/** In every message about a thing in a table, whatever the thing is. */
const TABLE_NAME = 1

/**
 * Listens to what the kernel tells of changes to its tables, and notices those to ours that are not from us. States:
 * *listening*; *paused*, while we change so much that the notifications would only be thrown away.
 */
export class DriftWatch {
  readonly #libc: Libc
  readonly #ownPorts: readonly number[]
  #socket: NetlinkSocket | undefined
  /** Apart from the one that listens, on which an answer would have to be looked for among what is told. */
  #asking: NetlinkSocket | undefined

  /** @param ownPorts the netlink ports of our writers; none when our changes are made by a command */
  constructor(libc: Libc, ownPorts: readonly number[]) {
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

  /** Goes up by one with each transaction, whoever makes it and in whichever table. */
  generation(): Promise<number> {
    this.#asking ??= new NetlinkSocket(this.#libc, NETLINK_NETFILTER)
    return readGeneration(this.#asking)
  }

  /**
   * Why our tables may not be what we made of them, or undefined. Looks at what was told since the last call.
   * @param commands so many commands changed our tables for us meanwhile, each from a port that we do not know
   */
  check(commands = 0): string | undefined {
    const ports = new Set<number>()
    try {
      for (const message of this.#socket?.receive() ?? []) {
        if (!this.#ownPorts.includes(message.port) && isAboutUs(message)) ports.add(message.port)
      }
    } catch (error) {
      if (!(error instanceof AnswersLost)) throw error
      return 'changes came faster than they could be followed'
    }
    return ports.size > commands ? 'somebody else changed the table' : undefined
  }
}

function isAboutUs(message: Message): boolean {
  if (message.type >> 8 !== NFNL_SUBSYS_NFTABLES || (message.type & 0xff) === nftMessage.NEWGEN) return false
  const table = findAttribute(attributesOf(message), TABLE_NAME)
  return table !== undefined && textOf(table) === tableName
}
