import type { globalv1, localv1 } from '@kpng/api'
import type { ServiceEntry } from './records.js'

/** When the change of a service's endpoints began in the cluster. */
export interface Trigger {
  /** `namespace/name` */
  readonly service: string
  /** Unix time in milliseconds, by the clock of the controller that wrote the EndpointSlice. */
  readonly unixMs: number
}

/** A thing before and after; undefined where it did not exist. */
export interface Changed<T> {
  readonly before: T | undefined
  readonly after: T | undefined
  /** When the change of a service's endpoints began in the cluster, if the source knows it. */
  readonly triggerUnixMs?: number | undefined
}

/** Everything that changed, by name. */
export interface Changes {
  readonly services: ReadonlyMap<string, Changed<ServiceEntry>>
  readonly nodes: ReadonlyMap<string, Changed<globalv1.Node>>
  readonly serviceCidrs: ReadonlyMap<string, Changed<localv1.ServiceCIDR>>
}

/**
 * What changed since a bookmark: each thing as it was then and as it is at `revision`. A thing that was changed and changed back is
 * listed, as two objects that say the same: whether they do is found out once for all readers, where it is told.
 */
export interface ChangeRange extends Changes, Timeline {}

/** How changes came here: those of the first, where several came together. Unix times in milliseconds. */
export interface Timeline {
  /** The store's revision. */
  readonly revision: number
  /** The source had it; undefined if the source does not say. */
  readonly receivedAtMs: number | undefined
  /** It was in the store. */
  readonly committedAtMs: number
}

/** A revision that a reader of the store has. Its contents belong to the history. */
export class Bookmark {
  readonly revision: number
  /** How many readers are here. */
  readers = 1
  /** The newest state at `revision` of what was changed between this bookmark and the next newer one. */
  services = new Map<string, Changed<ServiceEntry>>()
  nodes = new Map<string, Changed<globalv1.Node>>()
  serviceCidrs = new Map<string, Changed<localv1.ServiceCIDR>>()
  committedAtMs = 0
  receivedAtMs: number | undefined
  weight = 0
  /** The reader was too far behind: what it had is no longer known. */
  isLost = false
  /** What changed up to the newest revision, for all readers that are here. */
  range: ChangeRange | undefined

  constructor(revision: number) {
    this.revision = revision
  }
}

/** In endpoints: what an entry costs beside them. */
const entryWeight = 50

export function weightOf(entry: ServiceEntry | undefined): number {
  if (!entry) return 0
  let weight = entryWeight
  for (const endpoints of entry.sources.values()) weight += endpoints.length
  return weight
}

/**
 * Keeps what was superseded for as long as a reader needs it to find out what changed, and no longer. Each thing is kept once per
 * bookmark at most: a reader that stays away for a thousand changes of a service costs one old state of it. Readers that are at one
 * revision share a bookmark. Without readers nothing is kept.
 */
export class History {
  /** The oldest first. */
  readonly #bookmarks: Bookmark[] = []
  #weight = 0

  /** A reader is at this revision, the newest one. */
  add(revision: number): Bookmark {
    const newest = this.#bookmarks.at(-1)
    if (newest?.revision === revision) {
      newest.readers++
      return newest
    }
    const bookmark = new Bookmark(revision)
    this.#bookmarks.push(bookmark)
    return bookmark
  }

  /** A reader has left. What was kept for it alone is dropped, what older readers need too is handed down to them. */
  remove(bookmark: Bookmark): void {
    if (--bookmark.readers > 0 || bookmark.isLost) return
    const index = this.#bookmarks.lastIndexOf(bookmark)
    this.#bookmarks.splice(index, 1)
    this.#weight -= bookmark.weight
    const older = this.#bookmarks[index - 1]
    if (older) this.#keep(older, bookmark)
  }

  /** Records an update. Readers that are so far behind that more than `maxWeight` would be kept for them are lost. */
  record(changes: Changes, times: Pick<ChangeRange, 'committedAtMs' | 'receivedAtMs'>, maxWeight: number): void {
    const newest = this.#bookmarks.at(-1)
    if (!newest) return
    if (newest.committedAtMs === 0) Object.assign(newest, times)
    for (const bookmark of this.#bookmarks) bookmark.range = undefined
    this.#keep(newest, changes)
    while (this.#weight > maxWeight) {
      const oldest = this.#bookmarks.shift() as Bookmark
      this.#weight -= oldest.weight
      oldest.isLost = true
      for (const kept of [oldest.services, oldest.nodes, oldest.serviceCidrs]) kept.clear()
    }
  }

  /** What changed since a bookmark; undefined when that is no longer known, and the whole state is needed instead. */
  since(bookmark: Bookmark, revision: number): ChangeRange | undefined {
    if (bookmark.isLost) return undefined
    bookmark.range ??= this.#range(bookmark, revision)
    return bookmark.range
  }

  #range(bookmark: Bookmark, revision: number): ChangeRange {
    const { committedAtMs, receivedAtMs } = bookmark
    const steps = this.#bookmarks.slice(this.#bookmarks.lastIndexOf(bookmark))
    return {
      revision,
      committedAtMs,
      receivedAtMs,
      services: inOneStep(steps.map(({ services }) => services)),
      nodes: inOneStep(steps.map(({ nodes }) => nodes)),
      serviceCidrs: inOneStep(steps.map(({ serviceCidrs }) => serviceCidrs)),
    }
  }

  #keep(bookmark: Bookmark, { services, nodes, serviceCidrs }: Changes): void {
    for (const [path, change] of services) {
      if (bookmark.services.has(path)) continue
      const weight = weightOf(change.before)
      bookmark.weight += weight
      this.#weight += weight
    }
    addStep(bookmark.services, services)
    addStep(bookmark.nodes, nodes)
    addStep(bookmark.serviceCidrs, serviceCidrs)
  }
}

/** Adds a later step: the state before is the earlier one's, the state after the later one's, and the first trigger counts. */
function addStep<T>(changes: Map<string, Changed<T>>, later: ReadonlyMap<string, Changed<T>>): void {
  for (const [name, change] of later) {
    const earlier = changes.get(name)
    const triggerUnixMs = earlier?.triggerUnixMs ?? change.triggerUnixMs
    changes.set(name, earlier ? { before: earlier.before, after: change.after, triggerUnixMs } : change)
  }
}

/** What came and went in between is left out: nobody needs to know. */
function inOneStep<T>(steps: readonly ReadonlyMap<string, Changed<T>>[]): ReadonlyMap<string, Changed<T>> {
  const merged = new Map<string, Changed<T>>()
  for (const step of steps) addStep(merged, step)
  for (const [name, { before, after }] of merged) if (before === after) merged.delete(name)
  return merged
}
