import { readFileSync } from 'node:fs'
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

const element = { map_fd: 0, key: 8, value: 16, flags: 24 } as const

/** The commands of bpf(2) that kpng uses, and where `union bpf_attr` has their fields (linux/bpf.h). */
const commands = {
  BPF_MAP_CREATE: {
    number: 0,
    fields: {
      ...{ map_type: 0, key_size: 4, value_size: 8, max_entries: 12, map_flags: 16, map_name: 28 },
      ...{ btf_fd: 48, btf_key_type_id: 52, btf_value_type_id: 56 },
    },
  },
  BPF_MAP_LOOKUP_ELEM: { number: 1, fields: element },
  BPF_MAP_UPDATE_ELEM: { number: 2, fields: element },
  BPF_MAP_DELETE_ELEM: { number: 3, fields: element },
  BPF_PROG_LOAD: {
    number: 5,
    fields: {
      ...{ prog_type: 0, insn_cnt: 4, insns: 8, license: 16, log_level: 24, log_size: 28, log_buf: 32 },
      ...{ prog_name: 48, expected_attach_type: 68 },
    },
  },
  BPF_OBJ_PIN: { number: 6, fields: { pathname: 0, bpf_fd: 8 } },
  BPF_OBJ_GET: { number: 7, fields: { pathname: 0 } },
  BPF_PROG_GET_FD_BY_ID: { number: 13, fields: { id: 0 } },
  BPF_OBJ_GET_INFO_BY_FD: { number: 15, fields: { bpf_fd: 0, info_len: 4, info: 8 } },
  BPF_BTF_LOAD: { number: 18, fields: { btf: 0, btf_size: 16 } },
  BPF_MAP_LOOKUP_BATCH: {
    number: 24,
    fields: { in_batch: 0, out_batch: 8, keys: 16, values: 24, count: 32, map_fd: 36 },
  },
  BPF_MAP_UPDATE_BATCH: { number: 26, fields: { keys: 16, values: 24, count: 32, map_fd: 36 } },
  BPF_LINK_CREATE: { number: 28, fields: { prog_fd: 0, target_fd: 4, attach_type: 8 } },
  BPF_LINK_UPDATE: { number: 29, fields: { link_fd: 0, new_prog_fd: 4 } },
  BPF_LINK_GET_FD_BY_ID: { number: 30, fields: { id: 0 } },
  // The kernel writes the answer into `next_id`, which is at 4, behind the number that it comes after.
  BPF_LINK_GET_NEXT_ID: { number: 31, fields: { start_id: 0, count: 4 } },
  BPF_LINK_DETACH: { number: 34, fields: { link_fd: 0 } },
} as const

export type Command = keyof typeof commands

/** The fields of a command. A number is 32 bits, bytes are a pointer to them, and a text is a name of up to 15 characters. */
export type Fields<C extends Command> = {
  readonly [Name in keyof (typeof commands)[C]['fields']]?: number | string | Uint8Array
}

const attributeBytes = 128
const nameLength = 15
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
  /** Of commands for many entries: how many the kernel took or gave. */
  readonly count: number

  constructor(what: string, errno: string, { said = '', count = 0 }: { said?: string; count?: number } = {}) {
    super('refused', `The kernel refuses to ${what}: ${errno}.${said === '' ? '' : ` It says:\n${said}`}`)
    this.errno = errno
    this.count = count
  }
}

/** The system calls, with their errors as `BpfError`. */
export interface BpfSyscalls {
  /**
   * One command of bpf(2). Returns what the kernel returns; for commands for many entries, how many it took or gave.
   * @param what continues "The kernel refuses to …"
   */
  bpf<C extends Command>(command: C, fields: Fields<C>, what: string): number
  /** The memory of an array map. It stays mapped until the process ends. */
  mapMemory(fd: number, bytes: number): ArrayBuffer
  /** Resolves when every program run that began before the call has ended, which is what synchronize_rcu waits for. */
  gracePeriod(): Promise<void>
  /** The cookie of the network namespace that this thread is in. */
  networkNamespaceCookie(): bigint
  /** Mounts a bpf file system on a folder. Only this user can make anything in it. */
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
  const inUse: { fields?: unknown } = {}
  const failure = (what: string) => new BpfError(what, errnoText(koffi.errno()))

  return {
    bpf(command, fields, what) {
      const { number, fields: offsets } = commands[command] as { number: number; fields: Record<string, number> }
      const attributes = Buffer.alloc(attributeBytes)
      for (const [name, value] of Object.entries(fields) as [string, number | string | Uint8Array][]) {
        const offset = offsets[name] as number
        if (typeof value === 'number') attributes.writeUInt32LE(value >>> 0, offset)
        else if (typeof value === 'string') attributes.write(value.slice(0, nameLength), offset, 'latin1')
        else attributes.writeBigUInt64LE(BigInt(koffi.address(value)), offset)
      }
      // The attributes have addresses only: what they point to must not be collected before the kernel has read it.
      inUse.fields = fields
      const result = Number(bpf(numbers.bpf, number, attributes, attributes.length))
      const count = offsets.count === undefined ? undefined : attributes.readUInt32LE(offsets.count)
      if (result < 0) throw new BpfError(what, errnoText(koffi.errno()), count === undefined ? {} : { count })
      return count ?? result
    },

    mapMemory(fd, bytes) {
      const pages = Math.ceil(bytes / 4096) * 4096
      const memory = mmap(null, pages, PROT_READ_WRITE, MAP_SHARED, fd, 0)
      if (BigInt(koffi.address(memory)) === 0xffff_ffff_ffff_ffffn) throw failure('map the memory of a map')
      return koffi.view(memory, bytes)
    },

    gracePeriod: () =>
      new Promise((resolve, reject) => {
        // With a single CPU the kernel returns at once, though a program may have been interrupted in the middle.
        if (hasOneCpu()) return reject(new KpngError('refused', 'membarrier(2) does not wait with a single CPU.'))
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
      if (mount('bpf', folder, 'bpf', 0, Buffer.from('mode=0700\0')) !== 0)
        throw failure(`mount a bpf file system on ${folder}`)
    },

    lockFile: (fd) => flock(fd, LOCK_EX_NB) === 0,
  }
}

function hasOneCpu(): boolean {
  try {
    return /^\d+$/.test(readFileSync('/sys/devices/system/cpu/online', 'utf8').trim())
  } catch {
    return false
  }
}
