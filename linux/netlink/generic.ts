import { KpngError } from '@kpng/api'
import { loadLibc } from '../libc.js'
import { MessageBuffer } from './buffer.js'
import { ENOENT, errnoText, NETLINK_GENERIC, NLM_F_ACK, NLM_F_DUMP } from './constants.js'
import { dump } from './dump.js'
import { type Attribute, acknowledgementIn, attributesOf, findAttribute, hostOrder } from './messages.js'
import { NetlinkSocket } from './socket.js'

// Generic netlink: kernel modules register a family under a name, and get commands with attributes.

const GENL_ID_CTRL = 16
const CTRL_CMD_GETFAMILY = 3
const CTRL_ATTR_FAMILY_ID = 1
const CTRL_ATTR_FAMILY_NAME = 2

/** Bytes before the attributes: the netlink header, then command, version and two unused bytes. */
const genericHeaderLength = 20

/**
 * The kernel works on what is sent at once before it returns, so more requests are sent in parts. A part must be so small that its answers fit
 * into the socket's buffer if all of it is refused: of 300 refusals the kernel loses some, and says only that.
 */
const requestsAtOnce = 100

/** A list that changes while it is read may lack objects, and is read again. */
const listsMax = 5

/** From this number on, requests are sent on another thread. */
const asideFrom = 50

export interface GenericRequest {
  readonly command: number
  /** Adds the attributes. */
  readonly write?: (message: MessageBuffer) => void
}

/** A request that the kernel refused. The others were carried out. */
export interface Refusal {
  /** The index of the request. */
  readonly index: number
  readonly errno: number
}

/** A connection to one family. One call at a time. */
export class GenericNetlink {
  readonly #socket: NetlinkSocket
  readonly #family: number
  readonly #version: number
  #sequence = 1

  private constructor(socket: NetlinkSocket, family: number, version: number) {
    this.#socket = socket
    this.#family = family
    this.#version = version
  }

  /** Undefined if the kernel does not have the family. Asking for it loads its module, if that is allowed. */
  static async open(name: string, version: number): Promise<GenericNetlink | undefined> {
    const socket = new NetlinkSocket(await loadLibc(), NETLINK_GENERIC)
    try {
      const control = new GenericNetlink(socket, GENL_ID_CTRL, 1)
      const write = (message: MessageBuffer) => message.text(CTRL_ATTR_FAMILY_NAME, name)
      const [answer] = await control.read({ command: CTRL_CMD_GETFAMILY, write }, name)
      const family = answer && findAttribute(answer, CTRL_ATTR_FAMILY_ID)
      if (family) return new GenericNetlink(socket, hostOrder.readU16(family, 0), version)
    } catch (error) {
      if (!(error instanceof GenericNetlinkError) || error.errno !== ENOENT) {
        socket.close()
        throw error
      }
    }
    socket.close()
    return undefined
  }

  /** Carries out requests in order and resolves with those that were refused. Only the last of them is acknowledged. */
  async send(requests: readonly GenericRequest[]): Promise<Refusal[]> {
    const refused: Refusal[] = []
    for (let start = 0; start < requests.length; start += requestsAtOnce) {
      const part = requests.slice(start, start + requestsAtOnce)
      const first = this.#sequence
      const messages = new MessageBuffer(first)
      for (const request of part) this.#write(messages, request, 0)
      messages.addFlags(NLM_F_ACK)
      this.#sequence += part.length
      await this.#socket.send(messages.bytes, part.length >= asideFrom)
      let isDone = false
      for (const message of this.#socket.receive()) {
        const acknowledgement = acknowledgementIn(message)
        if (!acknowledgement || acknowledgement.sequence < first) continue
        const { sequence, errno } = acknowledgement
        if (errno !== 0) refused.push({ index: start + sequence - first, errno })
        isDone ||= sequence === messages.sequence
      }
      if (!isDone) throw new KpngError('unavailable', 'The kernel did not answer a request of generic netlink.')
    }
    return refused
  }

  /**
   * The attributes of the one answer to a request.
   * @param what is asked for, for the error
   */
  async read(request: GenericRequest, what: string): Promise<Attribute[][]> {
    const message = this.#single(request, 0)
    await this.#socket.send(message.bytes)
    const answers: Attribute[][] = []
    for (const each of this.#socket.receive()) {
      if (each.sequence !== message.sequence) continue
      const errno = acknowledgementIn(each)?.errno
      if (errno) throw new GenericNetlinkError(what, errno)
      if (errno === undefined) answers.push(copied(attributesOf(each, genericHeaderLength)))
    }
    return answers
  }

  /**
   * The objects of a list.
   * @param read makes an object of its attributes, which are valid only during the call. Undefined: it is left out
   */
  async list<Value>(
    request: GenericRequest,
    what: string,
    read: (attributes: readonly Attribute[]) => Value | undefined,
  ): Promise<Value[]> {
    for (let left = listsMax; left > 0; left--) {
      const message = this.#single(request, NLM_F_DUMP)
      const found: Value[] = []
      const isWhole = await dump(this.#socket, message.bytes, (each) => {
        const errno = acknowledgementIn(each)?.errno
        if (errno) throw new GenericNetlinkError(what, errno)
        const value = read([...attributesOf(each, genericHeaderLength)])
        if (value !== undefined) found.push(value)
      })
      if (isWhole) return found
    }
    throw new KpngError('unavailable', `The kernel's list of ${what} changed each time while it was read.`)
  }

  close(): void {
    this.#socket.close()
  }

  #single(request: GenericRequest, flags: number): MessageBuffer {
    const message = new MessageBuffer(this.#sequence++)
    this.#write(message, request, flags)
    return message
  }

  #write(messages: MessageBuffer, { command, write }: GenericRequest, flags: number): void {
    messages.begin(this.#family, flags)
    messages.header(Uint8Array.of(command, this.#version, 0, 0))
    write?.(messages)
    messages.end()
  }
}

/** The kernel refused to answer. */
class GenericNetlinkError extends KpngError {
  readonly errno: number

  constructor(what: string, errno: number) {
    super('unavailable', `The kernel does not answer about ${what}: ${errnoText(errno)}.`)
    this.errno = errno
  }
}

/** The bytes of a message are valid only until the next one is received. */
const copied = (attributes: Iterable<Attribute>): Attribute[] =>
  [...attributes].map(({ type, value }) => ({ type, value: Buffer.from(value) }))
