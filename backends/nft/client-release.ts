import { type Log, messageOf } from '@kpng/api'
import { FollowUp } from '@kpng/dataplane'
import { type ElementMap, type SetPath, setPath, type TableFamily } from '@kpng/linux/nftables'
import { names } from './rules/names.js'

/** The part of our tables that remembers clients. */
export interface Remembered {
  readBeside(path: SetPath): Promise<ElementMap>
  removeBeside(remove: Map<SetPath, ElementMap>): Promise<void>
}

export interface ClientReleaseOptions {
  readonly tables: Remembered
  /** The remembered clients whose endpoint does not serve now, or is among the lost ones. */
  readonly stale: (family: TableFamily, remembered: ElementMap, lost: ReadonlySet<string>) => ElementMap
  readonly onFailure: (families: readonly TableFamily[]) => void
  readonly log: Log
}

/** A packet may be on its way to an endpoint when that is removed, so its client may be remembered after the first look. */
const secondLookMs = 1000

/** The pause before the second look is this many times as long as the first look took. */
const pauseToLook = 4

/** Clients per transaction: a sync must not wait long for one. */
const clientsAtOnce = 1000

/** A transaction fails if a client expired meanwhile. If more than this many fail in one round, something else is wrong. */
const maxFailures = 2000

interface Look {
  readonly families: readonly TableFamily[]
  /** Endpoints that still serve, but whose clients must draw again because some of them may no longer use it. See `Affinity`. */
  readonly lost: ReadonlySet<string>
  readonly isSecond: boolean
}

/**
 * Releases the clients of endpoints that are gone, so that they move to another one. The kernel writes the map that remembers them,
 * so the whole map must be read: one second for 100,000 clients. Syncs do not wait for it.
 */
export class ClientRelease {
  readonly #options: ClientReleaseOptions
  readonly #looks = new FollowUp<Look, void>((looks) => this.#round(looks))
  /** Requests whose look failed in some family. */
  #failed: Look[] = []
  /** Families whose second look is due. */
  readonly #lookAgain = new Set<TableFamily>()
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: ClientReleaseOptions) {
    this.#options = options
  }

  /** Call this when the rules no longer use the endpoints that are gone. Resolves when their clients are released. */
  async release(families: readonly TableFamily[], lost: ReadonlySet<string>): Promise<void> {
    if (families.length > 0) await this.#looks.ask({ families, lost, isSecond: false })
  }

  /** Repeats what failed. */
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
      // A client that draws again may correctly draw the same endpoint, so lost endpoints count only once.
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
      this.#options.log.warn('Cannot release the clients of removed endpoints; the next sync tries again', {
        family,
        error: messageOf(error),
      })
      return 0
    }
  }

  async #releaseStale(family: TableFamily, lost: ReadonlySet<string>): Promise<number> {
    const { tables, stale } = this.#options
    const path = setPath(family, names.affinity)
    const clients = [...stale(family, await tables.readBeside(path), lost)]
    let failures = 0
    const remove = async (part: typeof clients): Promise<void> => {
      try {
        await tables.removeBeside(new Map([[path, new Map(part)]]))
      } catch (error) {
        if (++failures > maxFailures) throw error
        // One client that expired meanwhile fails the whole transaction. Halving finds the others.
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
