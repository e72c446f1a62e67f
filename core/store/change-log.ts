import type { globalv1, localv1 } from '@kpng/api'
import { sameEntry, sameMessage } from './equal.js'
import type { ServiceEntry } from './records.js'

/** A thing before and after; undefined where it did not exist. */
export interface Changed<T> {
  readonly before: T | undefined
  readonly after: T | undefined
}

export interface ServiceChange extends Changed<ServiceEntry> {
  /** When the change of the endpoints began in the cluster, where the source knows it. */
  readonly triggerUnixMs: number | undefined
}

/** What changed between two revisions: for each thing, its state at `from` and its state at `to`. */
export interface ChangeRange {
  readonly from: number
  readonly to: number
  /** When the first of the changes was written, and when the source received it where it says so. Unix time. */
  readonly committedAtMs: number
  readonly receivedAtMs: number | undefined
  readonly services: ReadonlyMap<string, ServiceChange>
  readonly nodes: ReadonlyMap<string, Changed<globalv1.Node>>
  readonly serviceCidrs: ReadonlyMap<string, Changed<localv1.ServiceCIDR>>
}

const sizeOf = (range: ChangeRange): number => 1 + range.services.size + range.nodes.size + range.serviceCidrs.size

/**
 * The changes of the last revisions. Bounded by how many things changed in them: what falls out is forgotten, and a watcher
 * that still needed it starts anew from the whole state.
 */
export class ChangeLog {
  readonly #maxChanges: number
  readonly #ranges: ChangeRange[] = []
  /** Ranges over several revisions, by where they begin; valid for the newest revision only. */
  readonly #merged = new Map<number, ChangeRange>()
  #size = 0

  constructor(maxChanges: number) {
    this.#maxChanges = maxChanges
  }

  append(range: ChangeRange): void {
    this.#merged.clear()
    this.#ranges.push(range)
    this.#size += sizeOf(range)
    let dropped = 0
    while (this.#size > this.#maxChanges && dropped < this.#ranges.length) {
      this.#size -= sizeOf(this.#ranges[dropped] as ChangeRange)
      dropped++
    }
    if (dropped > 0) this.#ranges.splice(0, dropped)
  }

  /** What changed after a revision, or undefined when the log does not reach back that far. */
  since(revision: number): ChangeRange | undefined {
    const oldest = this.#ranges[0]
    if (!oldest || revision < oldest.from) return undefined
    // Every revision is one step, so its place in the log can be counted.
    const first = revision - oldest.from
    if (first === this.#ranges.length - 1) return this.#ranges[first]
    const known = this.#merged.get(revision)
    if (known) return known
    const range = merge(this.#ranges.slice(first))
    this.#merged.set(revision, range)
    return range
  }
}

function merge(ranges: readonly ChangeRange[]): ChangeRange {
  const first = ranges[0] as ChangeRange
  const last = ranges[ranges.length - 1] as ChangeRange
  const services = new Map<string, ServiceChange>()
  for (const range of ranges) {
    for (const [path, change] of range.services) {
      const earlier = services.get(path)
      services.set(path, {
        before: earlier ? earlier.before : change.before,
        after: change.after,
        triggerUnixMs: earlier?.triggerUnixMs ?? change.triggerUnixMs,
      })
    }
  }
  dropUnchanged(services, sameEntry)
  return {
    from: first.from,
    to: last.to,
    committedAtMs: first.committedAtMs,
    receivedAtMs: first.receivedAtMs,
    services,
    nodes: mergeChanged(ranges.map((range) => range.nodes)),
    serviceCidrs: mergeChanged(ranges.map((range) => range.serviceCidrs)),
  }
}

function mergeChanged<T>(steps: readonly ReadonlyMap<string, Changed<T>>[]): Map<string, Changed<T>> {
  const merged = new Map<string, Changed<T>>()
  for (const step of steps) {
    for (const [name, change] of step) {
      const earlier = merged.get(name)
      merged.set(name, { before: earlier ? earlier.before : change.before, after: change.after })
    }
  }
  dropUnchanged(merged, sameMessage)
  return merged
}

/** Came and went in between, or was changed and changed back: nobody needs to know. */
function dropUnchanged<T>(changes: Map<string, Changed<T>>, same: (a: T, b: T) => boolean): void {
  for (const [name, { before, after }] of changes) {
    if (before === after || (before && after && same(before, after))) changes.delete(name)
  }
}
