import { KpngError } from '@kpng/api'
import { rightsAdvice } from '../capabilities.js'
import type { Libc } from '../libc.js'
import {
  AF_NETLINK,
  EAGAIN,
  EINTR,
  ENOBUFS,
  EPERM,
  EPROTONOSUPPORT,
  errnoText,
  MSG_DONTWAIT,
  NETLINK_ADD_MEMBERSHIP,
  NETLINK_CAP_ACK,
  NETLINK_EXT_ACK,
  protocolNames,
  SO_RCVBUFFORCE,
  SO_SNDBUFFORCE,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOL_NETLINK,
  SOL_SOCKET,
} from './constants.js'
import { hostOrder, type Message, messagesIn } from './messages.js'
import { readNotifications } from './notifications.js'

/** Longer messages are sent on another thread, so that the process is not blocked while the kernel works. */
const asyncFromBytes = 128 * 1024

const receiveBufferBytes = 256 * 1024

/** The kernel had messages for a socket whose buffer was full. */
export class AnswersLost extends KpngError {
  constructor() {
    super('unavailable', 'Messages of the kernel were lost because they came too fast.')
  }
}

/**
 * A netlink socket. The kernel works on a request while it is being sent: when `send` is done, the answers are there to be
 * read. Close it when it is no longer needed.
 */
export class NetlinkSocket {
  readonly #libc: Libc
  readonly #protocol: string
  /** -1 after it was closed, because the number may be reused for another file. */
  #fd: number
  readonly #receiveBuffer = Buffer.allocUnsafe(receiveBufferBytes)
  /** The kernel's number for this socket. Notifications about changes by this socket contain it. */
  readonly port: number
  #sendBufferBytes = 0
  /** Sends in progress on other threads. */
  #sending = 0
  #isClosed = false
  #endListening: (() => void) | undefined

  /** @param protocol NETLINK_NETFILTER, NETLINK_ROUTE or NETLINK_GENERIC */
  constructor(libc: Libc, protocol: number) {
    this.#libc = libc
    this.#protocol = protocolNames.get(protocol) ?? `netlink protocol ${protocol}`
    this.#fd = libc.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)
    if (this.#fd < 0) throw this.#error('open a socket to')
    const address = Buffer.alloc(12)
    hostOrder.writeU16(address, AF_NETLINK, 0)
    if (libc.bind(this.#fd, address, address.length) < 0) throw this.#closed(this.#error('bind a socket to'))
    const length = Buffer.alloc(4)
    hostOrder.writeU32(length, address.length, 0)
    if (libc.getsockname(this.#fd, address, length) < 0)
      throw this.#closed(this.#error('learn the port of a socket to'))
    this.port = hostOrder.readU32(address, 4)
    this.#set(SOL_NETLINK, NETLINK_CAP_ACK, 1)
    this.#set(SOL_NETLINK, NETLINK_EXT_ACK, 1)
  }

  /** Also receives the messages of a multicast group. If that fails, the socket is closed. */
  join(group: number, bufferBytes: number): void {
    this.#set(SOL_SOCKET, SO_RCVBUFFORCE, bufferBytes)
    if (this.#set(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group) < 0)
      throw this.#closed(this.#error(`join group ${group} of`))
  }

  /**
   * Also passes messages on as soon as they come, until the socket is closed. Those that were read by `receive` before are not passed on.
   * @param onLost some were lost, and no more come
   * @returns false if that is not possible here
   */
  listen(onMessages: (messages: Iterable<Message>) => void, onLost: () => void): boolean {
    this.#endListening = readNotifications(this.#libc, this.#fd, (bytes) => onMessages(messagesIn(bytes)), onLost)
    return this.#endListening !== undefined
  }

  /** @param aside whether it is sent on another thread, because the kernel may work on it for a long time */
  async send(bytes: Buffer, aside = bytes.length >= asyncFromBytes): Promise<void> {
    if (bytes.length > this.#sendBufferBytes) {
      // The kernel accepts a message only as a whole. It doubles the given size for its own bookkeeping.
      this.#sendBufferBytes = Math.max(bytes.length, 1024 * 1024)
      this.#set(SOL_SOCKET, SO_SNDBUFFORCE, this.#sendBufferBytes)
    }
    if (aside) {
      if ((await this.#sendAside(bytes)) === bytes.length) return
      // The errno is on the other thread. A message that was not accepted changed nothing, so it is sent again from this thread.
    }
    if (this.#libc.send(this.#fd, bytes, bytes.length, 0) < 0) throw this.#error(`send ${bytes.length} bytes to`)
  }

  async #sendAside(bytes: Buffer): Promise<number> {
    this.#sending++
    try {
      return await this.#libc.sendAsync(this.#fd, bytes, bytes.length, 0)
    } finally {
      this.#sending--
      if (this.#isClosed) this.close()
    }
  }

  /** The messages that can be read without waiting. */
  *receive(): Generator<Message> {
    for (;;) {
      const bytes = this.receiveSome()
      if (!bytes) return
      yield* messagesIn(bytes)
    }
  }

  /** The messages of one datagram; none if there is no datagram. */
  receiveOnce(): Iterable<Message> {
    const bytes = this.receiveSome()
    return bytes ? messagesIn(bytes) : []
  }

  /** One datagram, valid until the next call; undefined if there is none. */
  receiveSome(): Buffer | undefined {
    for (;;) {
      const length = this.#libc.recv(this.#fd, this.#receiveBuffer, this.#receiveBuffer.length, MSG_DONTWAIT)
      if (length > 0) return this.#receiveBuffer.subarray(0, length)
      const errno = length < 0 ? this.#libc.errno() : EAGAIN
      if (errno === EAGAIN) return undefined
      if (errno === ENOBUFS) throw new AnswersLost()
      if (errno !== EINTR) throw this.#error('read from')
    }
  }

  /** May be called twice. Waits for sends on other threads: otherwise they could go to a file that reuses the descriptor. */
  close(): void {
    this.#isClosed = true
    this.#endListening?.()
    this.#endListening = undefined
    if (this.#sending > 0 || this.#fd < 0) return
    this.#libc.close(this.#fd)
    this.#fd = -1
  }

  /** For errors after which the socket cannot be used. */
  #closed(error: KpngError): KpngError {
    this.close()
    return error
  }

  #set(level: number, name: number, value: number): number {
    const bytes = Buffer.alloc(4)
    hostOrder.writeU32(bytes, value, 0)
    return this.#libc.setsockopt(this.#fd, level, name, bytes, bytes.length)
  }

  /** Reads the errno of the failed call, so no other call may come in between. */
  #error(what: string): KpngError {
    const errno = this.#libc.errno()
    return new KpngError('unavailable', `Cannot ${what} ${this.#protocol}: ${errnoText(errno)}.${hintFor(errno)}`)
  }
}

function hintFor(errno: number): string {
  if (errno === EPERM) return ` ${rightsAdvice('CAP_NET_ADMIN')}`
  if (errno === EPROTONOSUPPORT) return ' This kernel does not have it; load its module, or use another kernel.'
  return ''
}
