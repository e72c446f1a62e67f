import type { globalv1, localv1 } from '@kpng/api'
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

/**
 * What changed between two revisions: for each thing, its state at `from` and its state at `to`. What was changed and then changed
 * back is in it, as two objects that say the same.
 */
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

export interface ChangeLogLimits {
  readonly maxChanges: number
  readonly maxEndpoints: number
}

interface Logged {
  readonly range: ChangeRange
  readonly changes: number
  readonly endpoints: number
}

/**
 * The changes of the last revisions. Bounded by how many things changed in them and by how many endpoints of old it keeps for
 * that: what falls out is forgotten, and a watcher that still needed it starts anew from the whole state.
 */
export class ChangeLog {
  readonly #limits: ChangeLogLimits
  readonly #logged: Logged[] = []
  /** Ranges over several revisions, by where they begin; valid for the newest revision only. */
  readonly #merged = new Map<number, ChangeRange>()
  #mergedChanges = 0
  #changes = 0
  #endpoints = 0

  constructor(limits: ChangeLogLimits) {
    this.#limits = limits
  }

  append(range: ChangeRange): void {
    this.#forgetMerged()
    const logged = { range, changes: changesIn(range), endpoints: endpointsKeptBy(range) }
    this.#logged.push(logged)
    this.#changes += logged.changes
    this.#endpoints += logged.endpoints
    let dropped = 0
    while (this.#isTooLarge && dropped < this.#logged.length) {
      const { changes, endpoints } = this.#logged[dropped] as Logged
      this.#changes -= changes
      this.#endpoints -= endpoints
      dropped++
    }
    if (dropped > 0) this.#logged.splice(0, dropped)
  }

  /** What changed after a revision, or undefined when the log does not reach back that far. */
  since(revision: number): ChangeRange | undefined {
    const oldest = this.#logged[0]?.range
    if (!oldest || revision < oldest.from) return undefined
    // Every revision is one step, so its place in the log can be counted.
    const first = revision - oldest.from
    if (first === this.#logged.length - 1) return this.#logged[first]?.range
    const known = this.#merged.get(revision)
    if (known) return known
    const range = merge(this.#logged.slice(first).map((logged) => logged.range))
    // Watchers that all lag by another number of revisions would together keep many times the log.
    if (this.#mergedChanges > this.#limits.maxChanges) this.#forgetMerged()
    this.#merged.set(revision, range)
    this.#mergedChanges += changesIn(range)
    return range
  }

  get #isTooLarge(): boolean {
    return this.#changes > this.#limits.maxChanges || this.#endpoints > this.#limits.maxEndpoints
  }

  #forgetMerged(): void {
    this.#merged.clear()
    this.#mergedChanges = 0
  }
}

const changesIn = (range: ChangeRange): number => 1 + range.services.size + range.nodes.size + range.serviceCidrs.size

/** How many endpoints, and lists of them, nobody else holds any more. */
function endpointsKeptBy(range: ChangeRange): number {
  let kept = 0
  for (const { before, after } of range.services.values()) {
    if (!before || before.sources === after?.sources) continue
    kept += before.sources.size
    for (const [source, endpoints] of before.sources) {
      if (after?.sources.get(source) !== endpoints) kept += endpoints.length
    }
  }
  return kept
}

function merge(ranges: readonly ChangeRange[]): ChangeRange {
  const first = ranges[0] as ChangeRange
  const last = ranges[ranges.length - 1] as ChangeRange
  return {
    from: first.from,
    to: last.to,
    committedAtMs: first.committedAtMs,
    receivedAtMs: first.receivedAtMs,
    services: mergeSteps(
      ranges.map((range) => range.services),
      (earlier, { after, triggerUnixMs }) => ({
        before: earlier.before,
        after,
        triggerUnixMs: earlier.triggerUnixMs ?? triggerUnixMs,
      }),
    ),
    nodes: mergeSteps(
      ranges.map((range) => range.nodes),
      asOne,
    ),
    serviceCidrs: mergeSteps(
      ranges.map((range) => range.serviceCidrs),
      asOne,
    ),
  }
}

const asOne = <T>({ before }: Changed<T>, { after }: Changed<T>): Changed<T> => ({ before, after })

/**
 * What came and went in between is left out: nobody needs to know. By identity: whether two objects say the same is found out
 * where it is told, once for all watchers; here it would be asked anew for each of those that lag.
 */
function mergeSteps<C extends Changed<unknown>>(
  steps: readonly ReadonlyMap<string, C>[],
  join: (earlier: C, later: C) => C,
): Map<string, C> {
  const merged = new Map<string, C>()
  for (const step of steps) {
    for (const [name, change] of step) {
      const earlier = merged.get(name)
      merged.set(name, earlier ? join(earlier, change) : change)
    }
  }
  for (const [name, { before, after }] of merged) if (before === after) merged.delete(name)
  return merged
}
