import type { Log } from '@kpng/api'

/**
 * What a source could not use. A bad object never stops another, and nothing is lost silently: each is logged once, with its name
 * and the reason, and counted. When the object is good again, or gone, it is forgotten, so that its next mistake is logged again.
 */
export class Skips {
  readonly #log: Log
  readonly #reasons = new Map<string, Set<string>>()
  #total = 0

  constructor(log: Log) {
    this.#log = log
  }

  /** How many things have been skipped so far. The same thing for the same reason counts once. */
  get total(): number {
    return this.#total
  }

  /** How many objects are now skipped, completely or in part. */
  get current(): number {
    return this.#reasons.size
  }

  /** What is skipped now, with the reasons, by kind and name. */
  get reasons(): ReadonlyMap<string, readonly string[]> {
    return new Map([...this.#reasons].map(([object, reasons]) => [object, [...reasons]]))
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
   * Reads one object. What `read` reports replaces what was known of the object before: a reason that no longer holds is
   * forgotten, and one that still holds is not logged twice.
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

  /** The object is gone. */
  forget(object: string): void {
    this.#reasons.delete(object)
  }
}
