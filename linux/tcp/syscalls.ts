import { arch, endianness } from 'node:os'
import { KpngError } from '@kpng/api'
import { type Libc, loadLibc } from '../libc.js'

// The system calls of a proxy: sockets, epoll, splice. Nothing is loaded before the first call of `loadTcp`. All of them are called
// without blocking, except epoll_wait.

export interface TcpSyscalls extends Libc {
  listen(fd: number, backlog: number): number
  accept4(fd: number, address: Uint8Array, length: Uint8Array, flags: number): number
  getpeername(fd: number, address: Uint8Array, length: Uint8Array): number
  shutdown(fd: number, how: number): number
  epoll_create1(flags: number): number
  epoll_ctl(epoll: number, operation: number, fd: number, event: Uint8Array | null): number
  epoll_wait(epoll: number, events: Uint8Array, count: number, timeoutMs: number): number
  eventfd(value: number, flags: number): number
  read(fd: number, bytes: Uint8Array, length: number): number
  write(fd: number, bytes: Uint8Array, length: number): number
  pipe2(fds: Uint8Array, flags: number): number
  fcntl(fd: number, command: number, value: number): number
  splice(from: number, offset: null, to: number, toOffset: null, length: number, flags: number): number
  /** The address of memory, for structures that point to it. */
  addressOf(memory: Uint8Array): bigint
}

export const SOCK_NONBLOCK = 0x800
export const SOCK_CLOEXEC = 0x80000

/** Rejects if this machine has no such calls that kpng can make; the message says why. */
export async function loadTcp(): Promise<TcpSyscalls> {
  const libc = await loadLibc()
  if (!['x64', 'arm64'].includes(arch()) || endianness() !== 'LE') {
    throw new KpngError('unsupported', `kpng can use epoll and splice only on x64 and arm64, and this is ${arch()}.`)
  }
  const { default: koffi } = await import('koffi')
  const library = koffi.load(null)
  return {
    ...libc,
    listen: library.func('int listen(int, int)'),
    accept4: library.func('int accept4(int, void *, void *, int)'),
    getpeername: library.func('int getpeername(int, void *, void *)'),
    shutdown: library.func('int shutdown(int, int)'),
    epoll_create1: library.func('int epoll_create1(int)'),
    epoll_ctl: library.func('int epoll_ctl(int, int, int, void *)'),
    epoll_wait: library.func('int epoll_wait(int, void *, int, int)'),
    eventfd: library.func('int eventfd(unsigned int, int)'),
    read: library.func('long read(int, void *, size_t)'),
    write: library.func('long write(int, const void *, size_t)'),
    pipe2: library.func('int pipe2(void *, int)'),
    fcntl: library.func('int fcntl(int, int, int)'),
    splice: library.func('long splice(int, void *, int, void *, size_t, unsigned int)'),
    addressOf: (memory) => BigInt(koffi.address(memory)),
  }
}
