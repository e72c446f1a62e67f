import { type Log, messageOf } from '@kpng/api'
import { FollowUp } from '@kpng/dataplane'
import type { ElementMap } from './elements/element.js'
import type { TableFamily } from './rules/family.js'
import { names, type SetPath, setPath } from './rules/names.js'

/** Our tables, as far as remembered clients go. */
export interface Remembered {
  readBeside(path: SetPath): Promise<ElementMap>
  removeBeside(remove: Map<SetPath, ElementMap>): Promise<void>
}

export interface ClientReleaseOptions {
  readonly kernel: Remembered
  /** Those of the remembered clients whose endpoint does not serve, as of now, or is among the lost ones. */
  readonly stale: (family: TableFamily, remembered: ElementMap, lost: ReadonlySet<string>) => ElementMap
  readonly onFailure: (families: readonly TableFamily[]) => void
  readonly log: Log
}

/** A packet may be on its way with an endpoint in the moment in which that goes, and be remembered after we looked. */
const secondLookMs = 1000

/** However long a look takes, the pause before the second one is so many times as long. */
const pauseToLook = 4

/** Syncs must not wait long for a transaction of ours. */
const clientsAtOnce = 1000

/** So many transactions may fail in one round because clients went by themselves. Beyond that, something else is wrong. */
const maxFailures = 2000

interface Look {
  readonly families: readonly TableFamily[]
  /** Endpoints whose clients draw again even though they serve: not all of them may stay. See `Affinity`. */
  readonly lost: ReadonlySet<string>
  readonly isSecond: boolean
}

/**
 * Releases the clients of endpoints that went, so that they move to another one. Packets write the map that remembers them, so
 * all of it must be read, which takes a second for 100,000 clients. Syncs go on meanwhile.
 */
export class ClientRelease {
  readonly #options: ClientReleaseOptions
  readonly #looks = new FollowUp<Look, void>((looks) => this.#round(looks))
  /** Looks that failed in some family. */
  #failed: Look[] = []
  /** Families whose second look is due. */
  readonly #lookAgain = new Set<TableFamily>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: ClientReleaseOptions) {
    this.#options = options
  }

  /** To be called when the kernel no longer gives anybody the endpoints that went. Resolves when their clients are released. */
  async release(families: readonly TableFamily[], lost: ReadonlySet<string>): Promise<void> {
    if (families.length > 0) await this.#looks.ask({ families, lost, isSecond: false })
  }

  /** Tries again what failed. */
  retry(): void {
    for (const look of this.#failed.splice(0)) void this.#looks.ask(look)
  }

  /** Resolves when the tables are no longer used. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#looks.settled()
  }

  async #round(looks: readonly Look[]): Promise<void> {
    const startedMs = performance.now()
    for (const family of new Set(looks.flatMap(({ families }) => families))) {
      if (this.#closed) return
      const own = looks.filter(({ families }) => families.includes(family))
      const released = await this.#tryRelease(family, own)
      // Those who draw again may draw the same endpoint, rightly so: what was lost counts only once.
      if (released > 0 || own.some(({ isSecond }) => !isSecond)) this.#lookAgain.add(family)
    }
    this.#planSecondLook(performance.now() - startedMs)
  }

  #planSecondLook(lookTookMs: number): void {
    if (this.#closed || this.#lookAgain.size === 0) return
    const look = () => {
      const families = [...this.#lookAgain]
      this.#lookAgain.clear()
      void this.#looks.ask({ families, lost: new Set(), isSecond: true })
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(look, Math.max(secondLookMs, pauseToLook * lookTookMs)).unref()
  }

  async #tryRelease(family: TableFamily, looks: readonly Look[]): Promise<number> {
    try {
      return await this.#releaseStale(family, new Set(looks.flatMap(({ lost }) => [...lost])))
    } catch (error) {
      if (this.#closed) return 0
      this.#failed.push(...looks.map((look) => ({ ...look, families: [family] })))
      this.#options.onFailure([family])
      this.#options.log.warn('Clients of endpoints that went could not be released; the next sync tries it again', {
        family,
        error: messageOf(error),
      })
      return 0
    }
  }

  async #releaseStale(family: TableFamily, lost: ReadonlySet<string>): Promise<number> {
    const { kernel, stale } = this.#options
    const path = setPath(family, names.affinity)
    const clients = [...stale(family, await kernel.readBeside(path), lost)]
    let failures = 0
    const remove = async (part: typeof clients): Promise<void> => {
      try {
        await kernel.removeBeside(new Map([[path, new Map(part)]]))
      } catch (error) {
        if (++failures > maxFailures) throw error
        // One that went by itself fails the whole transaction: the others are in one of the halves.
        if (part.length === 1) return
        await remove(part.slice(0, part.length >> 1))
        await remove(part.slice(part.length >> 1))
      }
    }
    for (let at = 0; at < clients.length && !this.#closed; at += clientsAtOnce) {
      await remove(clients.slice(at, at + clientsAtOnce))
      await new Promise((resolve) => setImmediate(resolve))
    }
    return clients.length
  }
}
