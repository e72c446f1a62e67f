import { SOCK_CLOEXEC, SOCK_NONBLOCK, type TcpSyscalls } from './syscalls.js'

const F_SETPIPE_SZ = 1031

/** What a pipe holds at most. Where a user has too many pages in pipes, the kernel makes them smaller. */
export const pipeBytes = 524_288
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
  readonly #fds = new Int32Array(2)
  readonly #fdBytes = new Uint8Array(this.#fds.buffer)

  /** @param count is told how many files were opened; below 0: closed */
  constructor(calls: TcpSyscalls, count: (files: number) => void) {
    this.calls = calls
    this.#count = count
  }

  /** An empty pipe. Undefined if none can be opened. */
  take(): Pipe | undefined {
    const spare = this.#spare.pop()
    if (spare) return spare
    if (this.calls.pipe2(this.#fdBytes, SOCK_NONBLOCK | SOCK_CLOEXEC) !== 0) return undefined
    this.#count(filesPerPipe)
    const pipe = { outOf: this.#fds[0] as number, into: this.#fds[1] as number, held: 0 }
    this.calls.fcntl(pipe.into, F_SETPIPE_SZ, pipeBytes)
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
    this.#count(-filesPerPipe)
  }

  close(): void {
    for (const pipe of this.#spare.splice(0)) this.discard(pipe)
  }
}
