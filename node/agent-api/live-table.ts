/** Names of rows that are gone are kept for readers that come back, at most this many. */
const maxGone = 5000

/** Rows as JSON texts by name, and the number of the event in which each of them changed last. */
export class LiveTable {
  readonly #texts = new Map<string, string>()
  /** Those that changed last are the last ones. */
  readonly #changedBy = new Map<string, number>()
  #floor: number

  /** @param number of the event with which everything began */
  constructor(number: number) {
    this.#floor = number
  }

  /** Null: there is none. */
  get(name: string): string | null {
    return this.#texts.get(name) ?? null
  }

  keys(): Iterable<string> {
    return this.#texts.keys()
  }

  /** All rows, with commas between them. */
  texts(): string {
    return [...this.#texts.values()].join(',')
  }

  /** What an event changed; null for rows that are gone. */
  apply(rows: ReadonlyMap<string, string | null>, number: number): void {
    for (const [name, text] of rows) {
      if (text === null) this.#texts.delete(name)
      else this.#texts.set(name, text)
      this.#changedBy.delete(name)
      this.#changedBy.set(name, number)
    }
    for (const [name, changedBy] of this.#changedBy) {
      if (this.#changedBy.size <= this.#texts.size + maxGone) break
      this.#changedBy.delete(name)
      this.#floor = Math.max(this.#floor, changedBy)
    }
  }

  /** Whether it is known what changed since an event. */
  remembers(number: number): boolean {
    return number >= this.#floor
  }

  /** The rows that changed after an event; null for those that are gone. */
  changedSince(number: number): Map<string, string | null> {
    const changed = new Map<string, string | null>()
    for (const [name, changedBy] of this.#changedBy) if (changedBy > number) changed.set(name, this.get(name))
    return changed
  }
}

/** Rows as a JSON object by their names. */
export function objectText(rows: ReadonlyMap<string, string | null>): string {
  const fields: string[] = []
  for (const [name, text] of rows) fields.push(`${JSON.stringify(name)}:${text}`)
  return `{${fields.join(',')}}`
}
