import { arch } from 'node:os'
import { Deadlines } from './deadlines.js'
import { systemError } from './sockets.js'
import { SOCK_CLOEXEC, SOCK_NONBLOCK, type TcpSyscalls } from './syscalls.js'

export const EPOLLIN = 0x1
export const EPOLLOUT = 0x4
export const EPOLLERR = 0x8
export const EPOLLHUP = 0x10
export const EPOLLRDHUP = 0x2000
const EPOLLET = 0x8000_0000
const EPOLL_CTL_ADD = 1
const EPOLL_CTL_DEL = 2

/** Events that one call returns. */
const batch = 256
/** `struct epoll_event` has no gap on x64. In 32-bit words: its size, and where its data is. */
const [words, dataWord] = arch() === 'x64' ? [3, 1] : [4, 2]
/** Node can end a thread only between calls, so no call waits longer. */
const longestWaitMs = 1000

/** What wants to know about events of its file descriptors. */
export interface EventHandler {
  onEvents(fd: number, events: number): void
}

/**
 * Waits for file descriptors, in a thread that does little else. It gives Node's own loop a turn between two waits, so promises,
 * messages and the end of the thread work as usual. Timers of Node do not: use `later`.
 */
export class EventLoop {
  readonly #calls: TcpSyscalls
  readonly #epoll: number
  readonly #wake: number
  readonly #events = new Int32Array(batch * words)
  readonly #eventBytes = new Uint8Array(this.#events.buffer)
  readonly #one = new Int32Array(words)
  readonly #oneBytes = new Uint8Array(this.#one.buffer)
  /** By descriptor. A number is used again after a close: the ticket tells old events from new ones. */
  readonly #handlers: (EventHandler | undefined)[] = []
  readonly #tickets: number[] = []
  readonly #onError: (error: unknown) => void
  #ticket = 0
  #next: (() => void)[] = []
  readonly #deadlines = new Deadlines()
  #isClosed = false

  /**
   * @param wake an eventfd. Writing to it ends a wait
   * @param onError gets what a handler threw
   */
  constructor(calls: TcpSyscalls, wake: number, onError: (error: unknown) => void) {
    this.#calls = calls
    this.#wake = wake
    this.#onError = onError
    this.#epoll = calls.epoll_create1(SOCK_CLOEXEC)
    if (this.#epoll < 0) throw systemError(calls, 'epoll_create1')
    const count = new Uint8Array(8)
    this.add(wake, EPOLLIN, { onEvents: () => void calls.read(wake, count, 8) })
  }

  /** Tells `handler` whenever the descriptor has one of the events, until `delete` or `forget`. */
  add(fd: number, events: number, handler: EventHandler): void {
    this.#ticket = (this.#ticket + 1) | 0
    this.#one[0] = events | 0
    this.#one[dataWord] = fd
    this.#one[dataWord + 1] = this.#ticket
    if (this.#calls.epoll_ctl(this.#epoll, EPOLL_CTL_ADD, fd, this.#oneBytes) !== 0) {
      throw systemError(this.#calls, 'epoll_ctl')
    }
    this.#handlers[fd] = handler
    this.#tickets[fd] = this.#ticket
  }

  /** The same, for what has changed since the last time. */
  addChanges(fd: number, events: number, handler: EventHandler): void {
    this.add(fd, events | EPOLLET, handler)
  }

  delete(fd: number): void {
    if (this.#handlers[fd] === undefined) return
    this.#calls.epoll_ctl(this.#epoll, EPOLL_CTL_DEL, fd, null)
    this.forget(fd)
  }

  /** For a descriptor that is about to be closed: closing takes it out of the kernel's list. */
  forget(fd: number): void {
    this.#handlers[fd] = undefined
  }

  /** After the events that are known now. */
  soon(call: () => void): void {
    this.#next.push(call)
  }

  readonly later = (ms: number, call: () => void): (() => void) => this.#deadlines.add(performance.now() + ms, ms, call)

  /** Runs until `close`. */
  run(): void {
    setImmediate(this.#turn)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#calls.close(this.#epoll)
    this.#calls.close(this.#wake)
  }

  readonly #turn = (): void => {
    if (this.#isClosed) return
    const count = this.#calls.epoll_wait(this.#epoll, this.#eventBytes, batch, this.#waitMs())
    for (let index = 0; index < count && !this.#isClosed; index++) {
      const at = index * words
      const fd = this.#events[at + dataWord] as number
      const handler = this.#handlers[fd]
      if (handler && this.#tickets[fd] === this.#events[at + dataWord + 1]) {
        // One connection must not end the others.
        try {
          handler.onEvents(fd, this.#events[at] as number)
        } catch (error) {
          this.#onError(error)
        }
      }
    }
    const next = this.#next
    this.#next = []
    for (const call of next) this.#try(call)
    for (const call of this.#deadlines.due(performance.now())) this.#try(call)
    if (!this.#isClosed) setImmediate(this.#turn)
  }

  #waitMs(): number {
    if (this.#next.length > 0) return 0
    const next = this.#deadlines.next
    return next === undefined
      ? longestWaitMs
      : Math.max(0, Math.min(longestWaitMs, Math.ceil(next - performance.now())))
  }

  #try(call: () => void): void {
    try {
      call()
    } catch (error) {
      this.#onError(error)
    }
  }
}

/** Ends the wait of an event loop from another thread. */
export class Wake {
  readonly fd: number
  readonly #calls: TcpSyscalls
  readonly #one = new Uint8Array(BigUint64Array.of(1n).buffer)

  constructor(calls: TcpSyscalls) {
    this.#calls = calls
    this.fd = calls.eventfd(0, SOCK_NONBLOCK | SOCK_CLOEXEC)
    if (this.fd < 0) throw systemError(calls, 'eventfd')
  }

  now(): void {
    this.#calls.write(this.fd, this.#one, 8)
  }
}
