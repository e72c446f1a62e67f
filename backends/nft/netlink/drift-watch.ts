import { tableName } from '../names.js'
import { NFNL_SUBSYS_NFTABLES, NFNLGRP_NFTABLES, nftMessage } from './constants.js'
import type { Libc } from './libc.js'
import { attributesOf, findAttribute, type Message, textOf } from './messages.js'
import { AnswersLost, NetlinkSocket } from './socket.js'

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
  readonly #ownPort: number | undefined
  #socket: NetlinkSocket | undefined

  /** @param ownPort the netlink port of our writer; undefined when our changes are made by a command */
  constructor(libc: Libc, ownPort: number | undefined) {
    this.#libc = libc
    this.#ownPort = ownPort
  }

  listen(): void {
    if (this.#socket) return
    this.#socket = new NetlinkSocket(this.#libc)
    this.#socket.join(NFNLGRP_NFTABLES, bufferBytes)
  }

  pause(): void {
    this.#socket?.close()
    this.#socket = undefined
  }

  /** Why our tables may not be what we made of them, or undefined. Looks at what was told since the last call. */
  check(): string | undefined {
    let reason: string | undefined
    try {
      for (const message of this.#socket?.receive() ?? []) {
        if (message.port !== this.#ownPort && isAboutUs(message)) reason ??= 'somebody else changed the table'
      }
    } catch (error) {
      if (!(error instanceof AnswersLost)) throw error
      reason = 'changes came faster than they could be followed'
    }
    return reason
  }

  /** Forgets what was told so far. */
  ignore(): void {
    this.check()
  }
}

function isAboutUs(message: Message): boolean {
  if (message.type >> 8 !== NFNL_SUBSYS_NFTABLES || (message.type & 0xff) === nftMessage.NEWGEN) return false
  const table = findAttribute(attributesOf(message), TABLE_NAME)
  return table !== undefined && textOf(table) === tableName
}
