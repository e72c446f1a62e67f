import { closeSync } from 'node:fs'
import { nameField } from './maps.js'
import { BpfError, type BpfSyscalls, type Field } from './syscalls.js'

/** The moments of a socket's life at which a program can change its address (linux/bpf.h). */
export const hooks = { connect4: 10, connect6: 11, getpeername4: 29, getpeername6: 30 } as const

export type Hook = keyof typeof hooks

const BPF_PROG_TYPE_CGROUP_SOCK_ADDR = 18
const logBytes = 1 << 20
/** The end of what the verifier says names the instruction that it refuses. */
const logKept = 1500

/** Loads a program for a hook. Returns its descriptor. The error has what the verifier says. */
export function loadProgram(sys: BpfSyscalls, hook: Hook, code: Uint8Array): number {
  const license = Buffer.from('GPL\0')
  const what = `load the program ${hook}`
  const fields = nameField(
    [
      [0, BPF_PROG_TYPE_CGROUP_SOCK_ADDR],
      [4, code.length / 8],
      [8, code],
      [16, license],
      [68, hooks[hook]],
    ],
    48,
    // Its first 15 characters are different for each hook.
    `kpng_${hook.replace('getpeername', 'getpeer')}`,
  )
  try {
    return sys.bpf('BPF_PROG_LOAD', fields, what).result
  } catch (error) {
    throw error instanceof BpfError ? new BpfError(what, error.errno, verifierLog(sys, fields, what)) : error
  }
}

/** Loads again, with a buffer for the log. */
function verifierLog(sys: BpfSyscalls, fields: readonly Field[], what: string): string {
  const log = Buffer.alloc(logBytes)
  const level = 1
  try {
    closeSync(sys.bpf('BPF_PROG_LOAD', [...fields, [24, level], [28, log.length], [32, log]], what).result)
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
    const fields: Field[] = [
      [0, program],
      [4, cgroup],
      [8, hooks[hook]],
    ]
    return new BpfLink(sys, sys.bpf('BPF_LINK_CREATE', fields, `attach the program ${hook}`).result)
  }

  /** Puts another program in the place of this link's. No socket misses both. */
  replaceProgram(program: number): void {
    const fields: Field[] = [
      [0, this.fd],
      [4, program],
    ]
    this.#sys.bpf('BPF_LINK_UPDATE', fields, 'replace a program')
  }

  info(): LinkInfo {
    const info = describe(this.#sys, this.fd, 'link')
    return { programId: info.readUInt32LE(8), cgroupId: info.readBigUInt64LE(16) }
  }

  close(): void {
    closeSync(this.fd)
  }
}

/** The number that the kernel gave to a loaded program. */
export const programId = (sys: BpfSyscalls, fd: number): number => describe(sys, fd, 'program').readUInt32LE(4)

function describe(sys: BpfSyscalls, fd: number, kind: string): Buffer {
  const info = Buffer.alloc(64)
  const fields: Field[] = [
    [0, fd],
    [4, info.length],
    [8, info],
  ]
  sys.bpf('BPF_OBJ_GET_INFO_BY_FD', fields, `describe a ${kind}`)
  return info
}
