import { KpngError, messageOf } from '@kpng/api'

// The few system calls that Node does not have, through koffi. koffi is loaded when it is first needed: importing this file does
// nothing, on any platform.

export interface Libc {
  socket(domain: number, type: number, protocol: number): number
  bind(fd: number, address: Uint8Array, length: number): number
  getsockname(fd: number, address: Uint8Array, length: Uint8Array): number
  connect(fd: number, address: Uint8Array, length: number): number
  setsockopt(fd: number, level: number, name: number, value: Uint8Array, length: number): number
  getsockopt(fd: number, level: number, name: number, value: Uint8Array, length: Uint8Array): number
  poll(fds: Uint8Array, count: number, timeoutMs: number): number
  send(fd: number, bytes: Uint8Array, length: number, flags: number): number
  /** The same on another thread. Its errno is not available here. */
  sendAsync(fd: number, bytes: Uint8Array, length: number, flags: number): Promise<number>
  recv(fd: number, bytes: Uint8Array, length: number, flags: number): number
  close(fd: number): number
  /** Makes a descriptor stand for the file of another one. */
  dup3(fd: number, other: number, flags: number): number
  flock(fd: number, operation: number): number
  /** Moves this thread to new namespaces. */
  unshare(flags: number): number
  /** Moves this thread to the namespace of an open file. */
  setns(fd: number, type: number): number
  /** Says how memory of this process will be used. Addresses are numbers. */
  madvise(address: number, length: number, advice: number): number
  /** Gives free memory of the C library back to the kernel. Only glibc has it. */
  mallocTrim?(keptBytes: number): number
  /** Of the last call on this thread. */
  errno(): number
}

let loaded: Promise<Libc> | undefined

/** Loads koffi once. Rejects if this is not Linux, or if koffi is not installed or has no build for this machine. */
export function loadLibc(): Promise<Libc> {
  loaded ??= load().catch((error) => {
    // The process may have run out of descriptors or memory for a moment, so the next call tries again.
    loaded = undefined
    throw error
  })
  return loaded
}

/** Nothing if the C library does not have the function. */
function ifThere<T extends object>(find: () => T): Partial<T> {
  try {
    return find()
  } catch {
    return {}
  }
}

async function load(): Promise<Libc> {
  if (process.platform !== 'linux') {
    throw new KpngError('unsupported', `This needs system calls of Linux, and this is ${process.platform}.`)
  }
  try {
    const { default: koffi } = await import('koffi')
    // null is the program itself. Node is linked with a C library, and this works whatever the library's file name is.
    const library = koffi.load(null)
    const send = library.func('long send(int, const void *, size_t, int)')
    return {
      socket: library.func('int socket(int, int, int)'),
      bind: library.func('int bind(int, const void *, int)'),
      getsockname: library.func('int getsockname(int, void *, void *)'),
      connect: library.func('int connect(int, const void *, int)'),
      setsockopt: library.func('int setsockopt(int, int, int, const void *, int)'),
      getsockopt: library.func('int getsockopt(int, int, int, void *, void *)'),
      poll: library.func('int poll(void *, unsigned long, int)'),
      send,
      sendAsync: (...args) =>
        new Promise((resolve, reject) => {
          send.async(...args, (error: unknown, result: number) => (error ? reject(error) : resolve(result)))
        }),
      recv: library.func('long recv(int, void *, size_t, int)'),
      close: library.func('int close(int)'),
      dup3: library.func('int dup3(int, int, int)'),
      flock: library.func('int flock(int, int)'),
      unshare: library.func('int unshare(int)'),
      setns: library.func('int setns(int, int)'),
      madvise: library.func('int madvise(uintptr_t, size_t, int)'),
      ...ifThere(() => ({ mallocTrim: library.func('int malloc_trim(size_t)') })),
      errno: koffi.errno,
    }
  } catch (error) {
    throw new KpngError(
      'unsupported',
      `The koffi library, by which kpng makes system calls, cannot be loaded on ${process.platform}-${process.arch}: ` +
        `${messageOf(error)}. Install koffi for this platform, or use a backend that does not need it.`,
      { cause: error },
    )
  }
}
