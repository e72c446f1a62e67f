import { SOCK_CLOEXEC, SOCK_NONBLOCK, type TcpSyscalls } from './syscalls.js'

const F_SETPIPE_SZ = 1031

/** What a pipe holds at most. Where a user has too many pages in pipes, the kernel makes them smaller. */
export const pipeBytes = 524_288
/**
 * A direction whose receiver does not read keeps its pipe, with the bytes in it. So that many of them do not take all memory, only the first
 * pipes are of full size; further ones have the kernel's 64 KiB, and above a number there are none: 92 MiB per thread at most.
 */
const maxLarge = 64
export const maxPipes = 1024
/** Pipes that are kept for the next who needs one. */
const maxSpare = 4
const filesPerPipe = 2

export interface Pipe {
  readonly into: number
  readonly outOf: number
  /** How many bytes are in it. */
  held: number
}

/** The pipes of one thread. Bytes move through them, so a few are enough for any number of sockets. */
export class Pipes {
  readonly calls: TcpSyscalls
  readonly #count: (files: number) => void
  readonly #spare: Pipe[] = []
  #open = 0
  readonly #fds = new Int32Array(2)
  readonly #fdBytes = new Uint8Array(this.#fds.buffer)

  /** @param count is told how many files were opened; below 0: closed */
  constructor(calls: TcpSyscalls, count: (files: number) => void) {
    this.calls = calls
    this.#count = count
  }

  /** An empty pipe. Undefined if none can be opened, or too many are. */
  take(): Pipe | undefined {
    const spare = this.#spare.pop()
    if (spare) return spare
    if (this.#open >= maxPipes) return undefined
    if (this.calls.pipe2(this.#fdBytes, SOCK_NONBLOCK | SOCK_CLOEXEC) !== 0) return undefined
    this.#count(filesPerPipe)
    const pipe = { outOf: this.#fds[0] as number, into: this.#fds[1] as number, held: 0 }
    if (this.#open < maxLarge) this.calls.fcntl(pipe.into, F_SETPIPE_SZ, pipeBytes)
    this.#open++
    return pipe
  }

  /** A pipe that still holds bytes, or had an error, is never used again. */
  giveBack(pipe: Pipe): void {
    if (pipe.held === 0 && this.#spare.length < maxSpare) this.#spare.push(pipe)
    else this.discard(pipe)
  }

  discard(pipe: Pipe): void {
    this.calls.close(pipe.into)
    this.calls.close(pipe.outOf)
    this.#open--
    this.#count(-filesPerPipe)
  }

  close(): void {
    for (const pipe of this.#spare.splice(0)) this.discard(pipe)
  }
}
