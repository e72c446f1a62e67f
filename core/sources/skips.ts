import type { Log } from '@kpng/api'

/**
 * What a source could not use. One bad object never stops another, and nothing is lost silently: each is logged once, with its
 * name and the reason, and counted. When the object is fine again (or gone) it is forgotten, so that the next mistake in it is
 * said again.
 */
export class Skips {
  readonly #log: Log
  readonly #reasons = new Map<string, Set<string>>()
  #total = 0

  constructor(log: Log) {
    this.#log = log
  }

  /** How many things have been skipped so far. Repetitions of the same thing for the same reason count once. */
  get total(): number {
    return this.#total
  }

  /** How many objects are skipped, wholly or in part, right now. */
  get current(): number {
    return this.#reasons.size
  }

  /**
   * @param object the kind and name, for instance `Service default/web`
   * @param reason a sentence that names the field and what was expected, for instance
   *   `spec.ports[0].port is 0; a port is 1 to 65535. The port is left out.`
   */
  report(object: string, reason: string): void {
    let reasons = this.#reasons.get(object)
    if (!reasons) {
      reasons = new Set()
      this.#reasons.set(object, reasons)
    }
    if (reasons.has(reason)) return
    reasons.add(reason)
    this.#total++
    this.#log.warn('Skipped', { object, reason })
  }

  /**
   * Reads one object: what `read` reports of it replaces what was known of it before, so a reason that no longer holds is
   * forgotten and one that still holds is not said twice.
   */
  reading<T>(object: string, read: (report: (reason: string) => void) => T): T {
    const before = this.#reasons.get(object)
    const now = new Set<string>()
    const result = read((reason) => {
      now.add(reason)
      if (before?.has(reason)) return
      this.report(object, reason)
    })
    if (now.size > 0) this.#reasons.set(object, now)
    else this.#reasons.delete(object)
    return result
  }

  /** The object is gone, and with it what was wrong with it. */
  forget(object: string): void {
    this.#reasons.delete(object)
  }
}
