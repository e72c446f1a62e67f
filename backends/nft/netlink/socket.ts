import { KpngError } from '@kpng/api'
import {
  AF_NETLINK,
  errnoText,
  MSG_DONTWAIT,
  NETLINK_ADD_MEMBERSHIP,
  NETLINK_CAP_ACK,
  NETLINK_EXT_ACK,
  NETLINK_NETFILTER,
  SO_RCVBUFFORCE,
  SO_SNDBUFFORCE,
  SOCK_CLOEXEC,
  SOCK_RAW,
  SOL_NETLINK,
  SOL_SOCKET,
} from './constants.js'
import type { Libc } from './libc.js'
import { type Message, messagesIn } from './messages.js'

const EAGAIN = 11
const EINTR = 4
const ENOBUFS = 105

/** More than this is sent on another thread, so that the process goes on while the kernel works. */
const asyncFromBytes = 128 * 1024

const receiveBufferBytes = 256 * 1024

/** Answers were lost because nobody read them in time. */
export class AnswersLost extends Error {}

/**
 * A netlink socket to netfilter. The kernel works on a request while it is being sent: when `send` is done, the answers are
 * there to be read.
 */
export class NetlinkSocket {
  readonly #libc: Libc
  readonly #fd: number
  readonly #receiveBuffer = Buffer.allocUnsafe(receiveBufferBytes)
  /** How the kernel names this socket; it says so in notifications of what this socket changed. */
  readonly port: number
  #sendBufferBytes = 0
  #closed = false

  constructor(libc: Libc) {
    this.#libc = libc
    this.#fd = libc.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER)
    if (this.#fd < 0) throw this.#error('open a netlink socket to netfilter')
    const address = Buffer.alloc(12)
    address.writeUInt16LE(AF_NETLINK, 0)
    if (libc.bind(this.#fd, address, 12) < 0) throw this.#error('bind a netlink socket')
    const length = Buffer.alloc(4)
    length.writeInt32LE(12)
    libc.getsockname(this.#fd, address, length)
    this.port = address.readUInt32LE(4)
    this.#set(SOL_NETLINK, NETLINK_CAP_ACK, 1)
    this.#set(SOL_NETLINK, NETLINK_EXT_ACK, 1)
  }

  /** Also receives what a multicast group is told. */
  join(group: number, bufferBytes: number): void {
    this.#set(SOL_SOCKET, SO_RCVBUFFORCE, bufferBytes)
    if (this.#set(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group) < 0) throw this.#error(`join netlink group ${group}`)
  }

  /** @param aside whether it is sent on another thread: the kernel may work on it for long */
  async send(bytes: Buffer, aside = bytes.length >= asyncFromBytes): Promise<void> {
    if (bytes.length > this.#sendBufferBytes) {
      // The kernel takes a message only whole. It doubles what it is given, for its own bookkeeping.
      this.#sendBufferBytes = Math.max(bytes.length, 1024 * 1024)
      this.#set(SOL_SOCKET, SO_SNDBUFFORCE, this.#sendBufferBytes)
    }
    if (aside) {
      if ((await this.#libc.sendAsync(this.#fd, bytes, bytes.length, 0)) === bytes.length) return
      // The reason stayed on the other thread. Nothing was changed by a message that was not taken, so it is simply sent
      // again from here.
    }
    if (this.#libc.send(this.#fd, bytes, bytes.length, 0) < 0)
      throw this.#error(`send ${bytes.length} bytes to netfilter`)
  }

  /** What is there to be read, without waiting. */
  *receive(): Generator<Message> {
    for (;;) {
      const bytes = this.receiveSome()
      if (!bytes) return
      yield* messagesIn(bytes)
    }
  }

  /** The messages of one datagram; none when there is no datagram. */
  receiveOnce(): Iterable<Message> {
    const bytes = this.receiveSome()
    return bytes ? messagesIn(bytes) : []
  }

  /** One datagram, valid until the next call; undefined when there is none. */
  receiveSome(): Buffer | undefined {
    for (;;) {
      const length = this.#libc.recv(this.#fd, this.#receiveBuffer, this.#receiveBuffer.length, MSG_DONTWAIT)
      if (length > 0) return this.#receiveBuffer.subarray(0, length)
      const errno = length < 0 ? this.#libc.errno() : EAGAIN
      if (errno === EAGAIN) return undefined
      if (errno === ENOBUFS) throw new AnswersLost('Messages of the kernel were lost because they came too fast.')
      if (errno !== EINTR) throw this.#error('read from netfilter')
    }
  }

  close(): void {
    if (!this.#closed) this.#libc.close(this.#fd)
    this.#closed = true
  }

  #set(level: number, name: number, value: number): number {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32LE(value)
    return this.#libc.setsockopt(this.#fd, level, name, bytes, 4)
  }

  #error(what: string): KpngError {
    const errno = this.#libc.errno()
    const hint = errno === 1 ? ' Run kpng with CAP_NET_ADMIN.' : ''
    return new KpngError('unavailable', `Cannot ${what}: ${errnoText(errno)}.${hint}`)
  }
}
