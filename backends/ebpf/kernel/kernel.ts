import { closeSync, existsSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { KpngError } from '@kpng/api'
import { loadBpf } from '@kpng/linux/bpf'
import { client, remembered, sizesFor } from '../layout.js'
import type { EbpfSettings } from '../options.js'
import { Tables } from '../tables/tables.js'
import { Attachment } from './attachment.js'
import { PinnedMaps, tableMaps } from './maps.js'
import { explained, findCgroup, provideBpffs } from './requirements.js'

/** The maps and programs of this process in the kernel. */
export class Kernel {
  readonly tables: Tables
  readonly attachment: Attachment
  readonly cgroup: string
  readonly #maps: PinnedMaps
  readonly #lock: number
  /** Of this process, if it did not find the folder there. */
  readonly #newFolder: string | undefined

  private constructor(
    maps: PinnedMaps,
    tables: Tables,
    attachment: Attachment,
    cgroup: string,
    lock: number,
    newFolder: string | undefined,
  ) {
    this.#maps = maps
    this.tables = tables
    this.attachment = attachment
    this.cgroup = cgroup
    this.#lock = lock
    this.#newFolder = newFolder
  }

  /** Checks the machine, opens or makes the maps, and loads the programs. Nothing is attached yet. The error says what is missing. */
  static async open(settings: EbpfSettings): Promise<Kernel> {
    const { log, bpffs, pinName, maxEndpoints, balancing, counters } = settings
    const sys = await loadBpf()
    const { path: cgroup, isRoot } = findCgroup(settings.cgroup)
    // The newest of what is needed: a kernel that is too old refuses it, and says so better than by what it refuses later.
    const hostNamespace = asked(() => sys.networkNamespaceCookie())
    if (!isRoot) {
      log.info('eBPF serves a part of this machine; nftables serves the sockets of all other cgroups', { cgroup })
    }
    provideBpffs(sys, bpffs)
    const folder = join(bpffs, pinName)
    const isNew = !existsSync(folder)
    if (isNew) mkdirSync(folder, { mode: 0o700 })
    const { uid } = statSync(folder)
    if (uid !== 0 && uid !== process.geteuid?.()) {
      throw new KpngError('unavailable', `${folder} belongs to another user (${uid}), so it is not kpng's. Remove it.`)
    }
    const lock = openSync(folder, 'r')
    try {
      if (!sys.lockFile(lock)) {
        throw new KpngError(
          'unavailable',
          `${folder} is in use by another kpng. Stop it first, or give this one another name with --table.`,
        )
      }
      const sizes = sizesFor(maxEndpoints, balancing === 'maglev')
      const maps = new PinnedMaps(sys, folder, sizes)
      const shared = { folder, cgroup, maps: maps.maps, hostNamespace, counts: counters }
      const attachment = Attachment.load(sys, shared)
      for (const [hook, why] of attachment.missing) {
        log.warn('The kernel does not take a program; nftables serves these sockets', { hook, why })
      }
      log.detail(1, 'eBPF is ready', { cgroup, hooks: attachment.hooks, adopted: maps.areAdopted })
      const tables = new Tables(tableMaps(sys, maps.maps, sizes), { balancing })
      return new Kernel(maps, tables, attachment, cgroup, lock, isNew ? folder : undefined)
    } catch (error) {
      closeSync(lock)
      if (isNew) rmSync(folder, { recursive: true, force: true })
      throw explained(error)
    }
  }

  /** Attaches the programs, which must find full tables, and removes what earlier versions left. */
  attach(): void {
    if (!existsSync(this.cgroup)) {
      throw new KpngError(
        'unavailable',
        `The cgroup ${this.cgroup} is gone, so eBPF serves no socket; nftables does. Make it again, or restart kpng with another --cgroup.`,
      )
    }
    try {
      this.attachment.attach()
      this.#maps.settle()
    } catch (error) {
      throw explained(error)
    }
  }

  /**
   * A sentence if somebody else changed something.
   * @param limit how many frontends are compared with the maps; the next call goes on after them
   */
  drift(limit: number): string | undefined {
    return this.attachment.drift() ?? this.#maps.drift() ?? this.tables.drift(limit)
  }

  /** The clients of a set whose session affinity is remembered: the cookies of their namespaces, and the numbers of their endpoints. */
  *clientsOf(set: number): Generator<{ readonly namespace: bigint; readonly endpoint: number }> {
    for (const [key, value] of this.#maps.maps.clients.entries()) {
      if (key.readUInt32LE(client.set) !== set) continue
      yield { namespace: key.readBigUInt64LE(client.namespace), endpoint: value.readUInt32LE(remembered.endpoint) }
    }
  }

  /** A start that fails leaves nothing; what an earlier run pinned goes on serving. */
  discard(): void {
    if (this.#newFolder !== undefined) rmSync(this.#newFolder, { recursive: true, force: true })
  }

  /** What is pinned stays, and serves. */
  async close(): Promise<void> {
    await this.tables.close()
    this.attachment.close()
    this.#maps.close()
    closeSync(this.#lock)
  }
}

/** What a call of the kernel gives, with an error that says what to do. */
function asked<Result>(ask: () => Result): Result {
  try {
    return ask()
  } catch (error) {
    throw explained(error)
  }
}
