import { changeSentence, type LiveSync, type ServiceChangeAnswer } from '@kpng/api'
import { followStore } from './follow.js'
import type { Changed, ChangeRange } from './history.js'
import type { ServiceEntry } from './records.js'
import type { Store } from './store.js'

/** How many changes are kept. */
const kept = 500
/** How many Services of one change are listed. */
const listed = 50
/** Sentences about Services with more endpoints in all would cost more than the change. */
const maxComparedEndpoints = 1000

/** What happened to a store since it was complete, for `kpng get changes` and the live page of a core. Its memory is bounded. */
export class ChangeLog {
  readonly #changes: LiveSync[] = []
  readonly #changedBy = new Map<string, LiveSync>()
  readonly #listeners = new Set<(change: LiveSync) => void>()
  /** Ends it. */
  readonly close: () => void

  constructor(store: Store) {
    this.close = followStore(store, (range) => {
      if (range) this.#add(describe(range), range)
    })
  }

  /** The oldest first. The number of a change is the revision of the store that holds it. */
  get syncs(): readonly LiveSync[] {
    return this.#changes
  }

  /** Undefined: none since the store was complete. */
  lastChangeOf(service: string): LiveSync | undefined {
    return this.#changedBy.get(service)
  }

  /** Returns the function that ends it. */
  onChange(listener: (change: LiveSync) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #add(change: LiveSync, { services }: ChangeRange): void {
    for (const [path, { after }] of services) {
      if (after?.service) this.#changedBy.set(path, change)
      else this.#changedBy.delete(path)
    }
    this.#changes.push(change)
    if (this.#changes.length > kept) this.#changes.shift()
    for (const listener of this.#listeners) listener(change)
  }
}

function describe({ revision, committedAtMs, receivedAtMs, services, nodes }: ChangeRange): LiveSync {
  const answers: ServiceChangeAnswer[] = []
  let firstTriggerMs = Number.POSITIVE_INFINITY
  let comparable = maxComparedEndpoints
  for (const [service, { before, after, triggerUnixMs = Number.POSITIVE_INFINITY }] of services) {
    firstTriggerMs = Math.min(firstTriggerMs, triggerUnixMs)
    if (answers.length === listed) continue
    const [old, now] = [before?.service && countOf(before), after?.service && countOf(after)]
    comparable -= (old ?? 0) + (now ?? 0)
    answers.push({
      service,
      ...(old === undefined ? {} : { before: old }),
      ...(now === undefined ? {} : { after: now }),
      ...(services.size > 1 && comparable >= 0 ? { sentence: differenceSentence(service, { before, after }) } : {}),
    })
  }
  const trigger = Number.isFinite(firstTriggerMs) ? firstTriggerMs - committedAtMs : undefined
  const received = receivedAtMs === undefined ? undefined : receivedAtMs - committedAtMs
  const sentence = sentenceOf(services, nodes.size)
  return {
    number: revision,
    at: new Date(committedAtMs).toISOString(),
    durationMs: Math.max(0, -(received ?? 0)),
    ...(trigger === undefined ? {} : { latencyMs: -trigger }),
    full: false,
    services: answers,
    moreServices: services.size - answers.length,
    times: {
      ...(trigger === undefined ? {} : { trigger }),
      ...(received === undefined ? {} : { received }),
      stored: 0,
      steps: [],
    },
    ...(sentence === undefined ? {} : { sentence }),
  }
}

function countOf({ sources }: ServiceEntry): number {
  let count = 0
  for (const endpoints of sources.values()) count += endpoints.length
  return count
}

function sentenceOf(services: ReadonlyMap<string, Changed<ServiceEntry>>, nodes: number): string | undefined {
  const [[service, change] = []] = services
  if (service === undefined || !change)
    return nodes === 1 ? 'A Node was changed' : nodes > 1 ? `${nodes} Nodes were changed` : undefined
  if (services.size > 1) return `${services.size} Services were changed`
  const { before, after } = change
  if ((before ? countOf(before) : 0) + (after ? countOf(after) : 0) > maxComparedEndpoints) return undefined
  return differenceSentence(service, change)
}

function differenceSentence(service: string, { before, after }: Changed<ServiceEntry>): string {
  const [old, now] = [conditionsByIp(before), conditionsByIp(after)]
  return changeSentence({
    service,
    what: !before?.service ? 'new' : !after?.service ? 'deleted' : 'changed',
    added: [...now].filter(([ip, is]) => is === 'ready' && old.get(ip) !== 'ready').map(([ip]) => ip),
    removed: [...old].flatMap(([ip, was]) => {
      const is = now.get(ip) ?? 'gone'
      return was === 'ready' && is !== 'ready' ? [{ ip, why: is }] : []
    }),
  })
}

function conditionsByIp(entry: ServiceEntry | undefined): Map<string, 'ready' | 'not-ready' | 'terminating'> {
  const found = new Map<string, 'ready' | 'not-ready' | 'terminating'>()
  for (const endpoints of entry?.sources.values() ?? []) {
    for (const { v4, v6, conditions } of endpoints) {
      const state = conditions.terminating ? 'terminating' : conditions.ready ? 'ready' : 'not-ready'
      // One address may be in two slices, on its way from one to the other.
      for (const ip of [...v4, ...v6]) if (found.get(ip) !== 'ready') found.set(ip, state)
    }
  }
  return found
}
