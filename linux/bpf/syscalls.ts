import { arch, endianness } from 'node:os'
import { KpngError, messageOf } from '@kpng/api'
import { loadLibc } from '../libc.js'
import { errnoText } from '../netlink/constants.js'

// bpf(2) and the few calls around it, through koffi. Nothing is loaded before the first call of `loadBpf`.

/** The numbers of system calls that libc has no function for, by architecture. */
const callNumbers: Readonly<Record<string, { readonly bpf: number; readonly membarrier: number }>> = {
  x64: { bpf: 321, membarrier: 324 },
  arm64: { bpf: 280, membarrier: 283 },
}

/** The commands of bpf(2) that kpng uses (linux/bpf.h). */
export const commands = {
  BPF_MAP_CREATE: 0,
  BPF_MAP_LOOKUP_ELEM: 1,
  BPF_MAP_UPDATE_ELEM: 2,
  BPF_MAP_DELETE_ELEM: 3,
  BPF_PROG_LOAD: 5,
  BPF_OBJ_PIN: 6,
  BPF_OBJ_GET: 7,
  BPF_OBJ_GET_INFO_BY_FD: 15,
  BPF_BTF_LOAD: 18,
  BPF_MAP_LOOKUP_BATCH: 24,
  BPF_MAP_UPDATE_BATCH: 26,
  BPF_LINK_CREATE: 28,
  BPF_LINK_UPDATE: 29,
} as const

/** A field of `union bpf_attr`: a number is 32 bits, a bigint 64 bits, bytes are a pointer to them. */
export type Field = readonly [offset: number, value: number | bigint | Uint8Array]

const attributeBytes = 128
const SOL_SOCKET = 1
const SO_NETNS_COOKIE = 71
const AF_INET = 2
const SOCK_DGRAM = 2
const MEMBARRIER_CMD_GLOBAL = 1
const PROT_READ_WRITE = 3
const MAP_SHARED = 1
const LOCK_EX_NB = 2 | 4

/** The kernel refused a call. */
export class BpfError extends KpngError {
  /** `EPERM`, `ENOENT` … */
  readonly errno: string

  constructor(what: string, errno: string, said = '') {
    super('refused', `The kernel refuses to ${what}: ${errno}.${said === '' ? '' : ` It says:\n${said}`}`)
    this.errno = errno
  }
}

/** The system calls, with their errors as `BpfError`. */
export interface BpfSyscalls {
  /**
   * One command of bpf(2). Returns what the kernel returns, and the attributes, into which it may have written.
   * @param what continues "The kernel refuses to …"
   */
  bpf(command: keyof typeof commands, fields: readonly Field[], what: string): { result: number; attributes: Buffer }
  /** The memory of an array map. It stays mapped until the process ends. */
  mapMemory(fd: number, bytes: number): ArrayBuffer
  /** Resolves when every program run that began before the call has ended, which is what synchronize_rcu waits for. */
  gracePeriod(): Promise<void>
  /** The cookie of the network namespace that this thread is in. */
  networkNamespaceCookie(): bigint
  /** Mounts a bpf file system on a folder. */
  mountBpffs(folder: string): void
  /** Locks an open file, until it is closed. Returns false if another process has the lock. */
  lockFile(fd: number): boolean
}

let loaded: Promise<BpfSyscalls> | undefined

/** Rejects if this machine has no bpf(2) that kpng can call; the message says why. */
export function loadBpf(): Promise<BpfSyscalls> {
  loaded ??= load().catch((error) => {
    loaded = undefined
    throw error
  })
  return loaded
}

async function load(): Promise<BpfSyscalls> {
  const numbers = callNumbers[arch()]
  const libc = await loadLibc()
  if (!numbers || endianness() !== 'LE') {
    throw new KpngError('unsupported', `kpng cannot use eBPF on ${arch()}, only on x64 and arm64. Use to-nft here.`)
  }
  const { default: koffi } = await import('koffi')
  const library = koffi.load(null)
  const bpf = library.func('long syscall(long, int, void *, unsigned int)')
  const membarrier = library.func('long syscall(long, int, unsigned int, int)')
  const mmap = library.func('void *mmap(void *, size_t, int, int, int, int64_t)')
  const getsockopt = library.func('int getsockopt(int, int, int, void *, void *)')
  const mount = library.func('int mount(const char *, const char *, const char *, unsigned long, const void *)')
  const flock = library.func('int flock(int, int)')
  const failure = (what: string) => new BpfError(what, errnoText(koffi.errno()))

  return {
    bpf(command, fields, what) {
      const attributes = Buffer.alloc(attributeBytes)
      for (const [offset, value] of fields) {
        if (typeof value === 'number') attributes.writeUInt32LE(value >>> 0, offset)
        else attributes.writeBigUInt64LE(typeof value === 'bigint' ? value : BigInt(koffi.address(value)), offset)
      }
      const result = Number(bpf(numbers.bpf, commands[command], attributes, attributes.length))
      if (result < 0) throw Object.assign(failure(what), { attributes })
      return { result, attributes }
    },

    mapMemory(fd, bytes) {
      const pages = Math.ceil(bytes / 4096) * 4096
      const memory = mmap(null, pages, PROT_READ_WRITE, MAP_SHARED, fd, 0)
      if (BigInt(koffi.address(memory)) === 0xffff_ffff_ffff_ffffn) throw failure('map the memory of a map')
      return koffi.view(memory, bytes)
    },

    gracePeriod: () =>
      new Promise((resolve, reject) => {
        membarrier.async(numbers.membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0, (error: unknown, result: number) => {
          if (!error && Number(result) >= 0) resolve()
          // Kernels with nohz_full refuse it.
          else reject(new KpngError('refused', `membarrier(2) failed: ${error ? messageOf(error) : 'see its errno'}.`))
        })
      }),

    networkNamespaceCookie() {
      const socket = libc.socket(AF_INET, SOCK_DGRAM, 0)
      if (socket < 0) throw failure('open a socket')
      try {
        const value = Buffer.alloc(8)
        const what = 'name the network namespace (SO_NETNS_COOKIE, Linux 5.14)'
        if (getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, value, Buffer.from([8, 0, 0, 0])) !== 0) throw failure(what)
        return value.readBigUInt64LE()
      } finally {
        libc.close(socket)
      }
    },

    mountBpffs(folder) {
      if (mount('bpf', folder, 'bpf', 0, null) !== 0) throw failure(`mount a bpf file system on ${folder}`)
    },

    lockFile: (fd) => flock(fd, LOCK_EX_NB) === 0,
  }
}
