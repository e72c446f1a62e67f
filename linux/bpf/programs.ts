import { closeSync } from 'node:fs'
import { BpfError, type BpfSyscalls, type Fields } from './syscalls.js'

/** The moments of a socket's life at which a program can change its address (linux/bpf.h). */
export const hooks = { connect4: 10, connect6: 11, getpeername4: 29, getpeername6: 30 } as const

export type Hook = keyof typeof hooks

const BPF_PROG_TYPE_CGROUP_SOCK_ADDR = 18
const logBytes = 1 << 20
/** The end of what the verifier says names the instruction that it refuses. */
const logKept = 1500

/** Loads a program for a hook. Returns its descriptor. The error has what the verifier says. */
export function loadProgram(sys: BpfSyscalls, hook: Hook, code: Uint8Array): number {
  const what = `load the program ${hook}`
  const fields = {
    prog_type: BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
    insn_cnt: code.length / 8,
    insns: code,
    license: Buffer.from('GPL\0'),
    expected_attach_type: hooks[hook],
    // Its first 15 characters are different for each hook.
    prog_name: `kpng_${hook.replace('getpeername', 'getpeer')}`,
  }
  try {
    return sys.bpf('BPF_PROG_LOAD', fields, what)
  } catch (error) {
    if (!(error instanceof BpfError)) throw error
    throw new BpfError(what, error.errno, { said: verifierLog(sys, fields, what) })
  }
}

/** Loads again, with a buffer for the log. */
function verifierLog(sys: BpfSyscalls, fields: Fields<'BPF_PROG_LOAD'>, what: string): string {
  const log = Buffer.alloc(logBytes)
  const withLog = { ...fields, log_level: 1, log_size: log.length, log_buf: log }
  try {
    closeSync(sys.bpf('BPF_PROG_LOAD', withLog, what))
  } catch {
    // The same error as before.
  }
  return log.toString('latin1', 0, log.indexOf(0)).slice(-logKept)
}

/** What the kernel says about a link. */
export interface LinkInfo {
  readonly programId: number
  /** The inode of the cgroup's folder; 0 if the cgroup was removed or the link detached. */
  readonly cgroupId: bigint
}

/** A program that is attached to a cgroup. It stays attached while a process has the link open, or while it is pinned. */
export class BpfLink {
  readonly fd: number
  readonly #sys: BpfSyscalls

  constructor(sys: BpfSyscalls, fd: number) {
    this.#sys = sys
    this.fd = fd
  }

  /** Attaches a program. Programs that others attached to the cgroup or below it stay. */
  static create(sys: BpfSyscalls, hook: Hook, program: number, cgroup: number): BpfLink {
    const fields = { prog_fd: program, target_fd: cgroup, attach_type: hooks[hook] }
    return new BpfLink(sys, sys.bpf('BPF_LINK_CREATE', fields, `attach the program ${hook}`))
  }

  /** Puts another program in the place of this link's. No socket misses both. */
  replaceProgram(program: number): void {
    this.#sys.bpf('BPF_LINK_UPDATE', { link_fd: this.fd, new_prog_fd: program }, 'replace a program')
  }

  info(): LinkInfo {
    const info = describe(this.#sys, this.fd, 'link')
    return { programId: info.readUInt32LE(8), cgroupId: info.readBigUInt64LE(16) }
  }

  /** The program runs no more, even if the link is pinned somewhere or open in another process. Linux 5.9. */
  detach(): void {
    this.#sys.bpf('BPF_LINK_DETACH', { link_fd: this.fd }, 'detach a program')
  }

  close(): void {
    closeSync(this.fd)
  }
}

/** A program of kpng that is attached somewhere on this machine, whoever pinned it, and in whatever file system. */
export interface AttachedProgram extends LinkInfo {
  readonly linkId: number
  /** `kpng_connect4` */
  readonly name: string
}

const programPrefix = 'kpng_'
const nameAt = 64
const nameBytes = 16

/** Needs CAP_SYS_ADMIN: without it the kernel shows no links, and this throws. */
export function attachedPrograms(sys: BpfSyscalls): AttachedProgram[] {
  const found: AttachedProgram[] = []
  for (let id = nextLink(sys, 0); id !== undefined; id = nextLink(sys, id)) {
    const info = opened(
      () => sys.bpf('BPF_LINK_GET_FD_BY_ID', { id: id as number }, 'open a link'),
      (fd) => new BpfLink(sys, fd).info(),
    )
    if (!info || info.cgroupId === 0n) continue
    const { programId } = info
    const name = opened(
      () => sys.bpf('BPF_PROG_GET_FD_BY_ID', { id: programId }, 'open a program'),
      (fd) =>
        describe(sys, fd, 'program', nameAt + nameBytes)
          .toString('latin1', nameAt)
          .replace(/\0.*$/s, ''),
    )
    if (name?.startsWith(programPrefix)) found.push({ ...info, linkId: id, name })
  }
  return found
}

function nextLink(sys: BpfSyscalls, after: number): number | undefined {
  try {
    return sys.bpf('BPF_LINK_GET_NEXT_ID', { start_id: after }, 'list the links')
  } catch (error) {
    if (error instanceof BpfError && error.errno === 'ENOENT') return undefined
    throw error
  }
}

/** Undefined if it went meanwhile. */
function opened<Result>(open: () => number, use: (fd: number) => Result): Result | undefined {
  let fd: number
  try {
    fd = open()
  } catch (error) {
    if (error instanceof BpfError && error.errno === 'ENOENT') return undefined
    throw error
  }
  try {
    return use(fd)
  } finally {
    closeSync(fd)
  }
}

/** The number that the kernel gave to a loaded program. */
export const programId = (sys: BpfSyscalls, fd: number): number => describe(sys, fd, 'program').readUInt32LE(4)

function describe(sys: BpfSyscalls, fd: number, kind: string, bytes = 64): Buffer {
  const info = Buffer.alloc(bytes)
  sys.bpf('BPF_OBJ_GET_INFO_BY_FD', { bpf_fd: fd, info_len: info.length, info }, `describe a ${kind}`)
  return info
}
