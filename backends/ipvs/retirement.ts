import { type Log, messageOf } from '@kpng/api'
import { endpointKey } from '@kpng/dataplane'
import type { KernelDestination } from './ipvs-messages.js'

export interface RetirementOptions {
  readonly limitMs: number
  readonly intervalMs: number
  /** What a virtual server has; undefined if it is gone. */
  readonly destinationsOf: (serverKey: string) => Promise<readonly KernelDestination[] | undefined>
  readonly remove: (retired: readonly { readonly serverKey: string; readonly key: string }[]) => Promise<void>
  readonly log: Log
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number
}

/** Removes destinations of weight 0 when they have no connections left, or after a limit. */
export class Retirement {
  readonly #options: RetirementOptions
  readonly #now: () => number
  /** By virtual server, then by destination: since when. */
  readonly #since = new Map<string, Map<string, number>>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #look: Promise<void> | undefined

  constructor(options: RetirementOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  add(serverKey: string, key: string): void {
    const known = this.#since.get(serverKey) ?? new Map<string, number>()
    this.#since.set(serverKey, known)
    if (!known.has(key)) known.set(key, this.#now())
    this.#wait()
  }

  /** It serves again, or it is gone. */
  forget(serverKey: string, key?: string): void {
    const known = this.#since.get(serverKey)
    if (key !== undefined) known?.delete(key)
    if (key === undefined || known?.size === 0) this.#since.delete(serverKey)
  }

  get size(): number {
    let size = 0
    for (const known of this.#since.values()) size += known.size
    return size
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#look
  }

  /** Looks at all of them once. */
  async look(): Promise<void> {
    const { destinationsOf, remove, limitMs } = this.#options
    const done: { serverKey: string; key: string }[] = []
    for (const [serverKey, known] of this.#since) {
      const there = await destinationsOf(serverKey)
      if (!there) {
        this.#since.delete(serverKey)
        continue
      }
      const byKey = new Map(there.map((destination) => [endpointKey(destination), destination]))
      for (const [key, since] of known) {
        const destination = byKey.get(key)
        const isIdle = destination ? destination.active + destination.inactive === 0 : true
        if (isIdle || this.#now() - since >= limitMs) done.push({ serverKey, key })
      }
    }
    if (done.length > 0 && !this.#isClosed) await remove(done)
  }

  #wait(): void {
    if (this.#timer || this.#isClosed) return
    this.#timer = setTimeout(() => {
      this.#look = this.look()
        .catch((error) => {
          this.#options.log.warn('Cannot look for connections of endpoints that are gone; it is tried again', {
            error: messageOf(error),
          })
        })
        .finally(() => {
          this.#timer = undefined
          if (this.#since.size > 0) this.#wait()
        })
    }, this.#options.intervalMs).unref()
  }
}
