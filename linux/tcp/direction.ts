import { errnoText } from '../netlink/constants.js'
import { type Pipe, type Pipes, pipeBytes } from './pipes.js'
import type { TcpSyscalls } from './syscalls.js'

const SPLICE_F_MOVE = 1
const SPLICE_F_NONBLOCK = 2
const MSG_PEEK = 2
const MSG_TRUNC = 0x20
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
const SHUT_WR = 1
const EAGAIN = 11

/** How often one socket may be read before others have their turn. */
const rounds = 16

/** Only for those who find no pipe. What is in it is never kept. */
let copyBuffer: Uint8Array | undefined

/**
 * Bytes on their way from one socket to another. The kernel moves them through a pipe (splice), so they never come to this process, and a
 * pipe belongs to a direction only while it holds bytes. If no pipe can be opened, bytes are copied, and only as many are taken as the other
 * socket accepts. States: *idle*: waits for bytes; *full*: waits until the other socket takes more; *ended*, which the other socket was told;
 * *failed*.
 */
export class Direction {
  readonly #from: number
  readonly #to: number
  #pipe: Pipe | undefined
  #state: 'idle' | 'full' | 'ended' | 'failed' = 'idle'
  /** Bytes that were passed on. */
  moved = 0
  /** Why it failed: `read ECONNRESET`. */
  failure: string | undefined

  constructor(from: number, to: number) {
    this.#from = from
    this.#to = to
  }

  get hasEnded(): boolean {
    return this.#state === 'ended'
  }

  /** It does not help to read more. */
  get isFull(): boolean {
    return this.#state === 'full'
  }

  /** Moves what can be moved now. Returns whether there may be more, which is for the next turn. */
  pump(pipes: Pipes): boolean {
    for (let round = 0; round < rounds; round++) {
      if (this.#state === 'ended' || this.#state === 'failed') return false
      const pipe = this.#pipe ?? pipes.take()
      const goesOn = pipe ? this.#splice(pipe, pipes) : this.#copy(pipes)
      if (!goesOn) return false
    }
    return true
  }

  /** Lets go of what it holds. */
  close(pipes: Pipes): void {
    if (this.#pipe) pipes.discard(this.#pipe)
    this.#pipe = undefined
  }

  /** Returns whether to try again. */
  #splice(pipe: Pipe, pipes: Pipes): boolean {
    const { calls } = pipes
    this.#pipe = undefined
    if (pipe.held === 0) {
      const read = calls.splice(this.#from, null, pipe.into, null, pipeBytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
      if (read <= 0) {
        const isSound = this.#notRead(read, calls)
        if (isSound) pipes.giveBack(pipe)
        else pipes.discard(pipe)
        return false
      }
      pipe.held = read
    }
    const written = calls.splice(pipe.outOf, null, this.#to, null, pipe.held, SPLICE_F_MOVE | SPLICE_F_NONBLOCK)
    if (written > 0) {
      pipe.held -= written
      this.#passedOn(written)
      if (pipe.held === 0) pipes.giveBack(pipe)
      else this.#pipe = pipe
      return true
    }
    if (this.#notWritten(calls.errno())) this.#pipe = pipe
    else pipes.discard(pipe)
    return false
  }

  #copy({ calls }: Pipes): boolean {
    copyBuffer ??= new Uint8Array(65_536)
    const read = calls.recv(this.#from, copyBuffer, copyBuffer.length, MSG_PEEK | MSG_DONTWAIT)
    if (read <= 0) {
      this.#notRead(read, calls)
      return false
    }
    const written = calls.send(this.#to, copyBuffer, read, MSG_DONTWAIT | MSG_NOSIGNAL)
    if (written < 0) {
      this.#notWritten(calls.errno())
      return false
    }
    calls.recv(this.#from, copyBuffer, written, MSG_TRUNC | MSG_DONTWAIT)
    this.#passedOn(written)
    return true
  }

  #passedOn(bytes: number): void {
    this.moved += bytes
    this.#state = 'idle'
  }

  /** Returns whether the socket is sound. */
  #notRead(result: number, calls: TcpSyscalls): boolean {
    const errno = result === 0 ? 0 : calls.errno()
    if (result === 0) {
      this.#state = 'ended'
      calls.shutdown(this.#to, SHUT_WR)
    } else if (errno === EAGAIN) this.#state = 'idle'
    else this.#fail('read', errno)
    return this.#state !== 'failed'
  }

  /** Returns whether the socket is sound. */
  #notWritten(errno: number): boolean {
    if (errno === EAGAIN) this.#state = 'full'
    else this.#fail('write', errno)
    return this.#state !== 'failed'
  }

  #fail(call: 'read' | 'write', errno: number): void {
    this.#state = 'failed'
    this.failure = `${call} ${errnoText(errno)}`
  }
}
