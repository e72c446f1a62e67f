import { closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '@kpng/api'
import { BpfLink, type BpfSyscalls, type Hook, loadProgram, openPinned, pin, programId } from '@kpng/linux/bpf'
import { type ProgramOptions, programFor } from '../programs.js'

export interface AttachmentOptions extends Omit<ProgramOptions, 'keepsPeers'> {
  /** Where links are pinned. */
  readonly folder: string
  /** The cgroup whose sockets are served. */
  readonly cgroup: string
}

interface LoadedProgram {
  readonly fd: number
  readonly id: number
}

/** getpeername first: a connect program keeps for it what a socket asked for. */
const order: readonly Hook[] = ['getpeername4', 'getpeername6', 'connect4', 'connect6']

/** The programs of this process, and their links to a cgroup. The links are pinned, so they outlive the process. */
export class Attachment {
  readonly #sys: BpfSyscalls
  readonly #options: AttachmentOptions
  readonly #programs = new Map<Hook, LoadedProgram>()
  readonly #links = new Map<Hook, BpfLink>()
  /** The hooks whose program the kernel refused, and what it said. */
  readonly missing = new Map<Hook, string>()

  private constructor(sys: BpfSyscalls, options: AttachmentOptions) {
    this.#sys = sys
    this.#options = options
  }

  /** Loads all programs and attaches none. Throws if the kernel takes no connect program. */
  static load(sys: BpfSyscalls, options: AttachmentOptions): Attachment {
    const attachment = new Attachment(sys, options)
    let failure: unknown
    for (const hook of order) {
      try {
        attachment.#load(hook)
      } catch (error) {
        failure = error
        attachment.missing.set(hook, messageOf(error))
      }
    }
    const connects = [...attachment.#programs.keys()].some((hook) => hook.startsWith('connect'))
    if (connects) return attachment
    attachment.close()
    throw failure
  }

  #load(hook: Hook): void {
    const keepsPeers = this.#programs.has(hook.endsWith('6') ? 'getpeername6' : 'getpeername4')
    const { code } = programFor(hook, { ...this.#options, keepsPeers })
    const fd = loadProgram(this.#sys, hook, code)
    this.#programs.set(hook, { fd, id: programId(this.#sys, fd) })
  }

  /** The hooks that are served. */
  get hooks(): readonly Hook[] {
    return order.filter((hook) => this.#programs.has(hook))
  }

  /** Attaches what is not attached, and replaces the programs of an earlier process. May be called again. */
  attach(): void {
    const cgroup = openSync(this.#options.cgroup, 'r')
    try {
      const cgroupId = inodeOf(this.#options.cgroup)
      for (const [hook, program] of this.#programs) this.#attachOne(hook, program, cgroup, cgroupId)
      for (const hook of this.missing.keys()) this.#detach(hook)
    } finally {
      closeSync(cgroup)
    }
  }

  #attachOne(hook: Hook, program: LoadedProgram, cgroup: number, cgroupId: bigint | undefined): void {
    const path = this.#pathOf(hook)
    const link = this.#links.get(hook) ?? this.#openLink(path)
    const info = link?.info()
    if (link && info && info.cgroupId === cgroupId) {
      this.#links.set(hook, link)
      if (info.programId !== program.id) link.replaceProgram(program.fd)
      if (!existsSync(path)) pin(this.#sys, link.fd, path)
      return
    }
    const attached = BpfLink.create(this.#sys, hook, program.fd, cgroup)
    this.#links.set(hook, attached)
    // The old one belongs to another cgroup, or to one that is gone.
    rmSync(path, { force: true })
    link?.close()
    pin(this.#sys, attached.fd, path)
  }

  #openLink(path: string): BpfLink | undefined {
    const fd = openPinned(this.#sys, path)
    return fd === undefined ? undefined : new BpfLink(this.#sys, fd)
  }

  #detach(hook: Hook): void {
    rmSync(this.#pathOf(hook), { force: true })
  }

  #pathOf(hook: Hook): string {
    return join(this.#options.folder, hook)
  }

  /** A sentence if a link is not as it should be. */
  drift(): string | undefined {
    const cgroupId = inodeOf(this.#options.cgroup)
    for (const [hook, link] of this.#links) {
      const info = link.info()
      if (cgroupId === undefined) return `the cgroup ${this.#options.cgroup} is gone`
      if (info.cgroupId !== cgroupId) return `the program ${hook} is no longer attached to ${this.#options.cgroup}`
      if (info.programId !== this.#programs.get(hook)?.id) return `another program took the place of ${hook}`
      if (!existsSync(this.#pathOf(hook))) return `the pin of ${hook} is gone`
    }
    return undefined
  }

  /** What is pinned stays attached. */
  close(): void {
    for (const link of this.#links.values()) link.close()
    for (const { fd } of this.#programs.values()) closeSync(fd)
    this.#links.clear()
    this.#programs.clear()
  }
}

/** The kernel names a cgroup by the inode of its folder. Undefined if it is gone. */
const inodeOf = (path: string): bigint | undefined => statSync(path, { bigint: true, throwIfNoEntry: false })?.ino
