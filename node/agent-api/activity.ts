import { changeSentence, ipsOf, type LiveSync, messageOf, type ServiceChangeAnswer, type SyncTimes } from '@kpng/api'
import type { Changes, NodeView, ServiceChange, SyncReport } from '@kpng/client'
import type { ServiceFactsOf } from './service-facts.js'

/** How many syncs are kept. */
const kept = 500
/** How many Services of one sync are listed. */
const listed = 50
/** Sentences about Services with more endpoints in all would cost more than the change. */
const maxComparedEndpoints = 1000

/** Told about each sync. `changes` is what the backend was told. */
export type SyncListener = (sync: LiveSync, changes: Changes) => void

/** What this process did so far, for `kpng status`, `kpng get changes` and the live page. Its memory is bounded. */
export class Activity {
  readonly startedAtMs: number
  readonly #factsOf: ServiceFactsOf | undefined
  readonly #syncs: LiveSync[] = []
  readonly #listeners = new Set<SyncListener>()
  /** The last sync that changed a Service, of those that changed since the start. */
  readonly #changedBy = new Map<string, LiveSync>()
  #view: NodeView | undefined
  #failed = 0
  #full = 0
  #count = 0
  #endpoints = 0
  #repaired: readonly string[] = []
  /** When the first change arrived that waits for a sync. */
  #arrivedAtMs: number | undefined
  #drift: { readonly noticedAt: string; readonly reason: string } | undefined

  /** @param factsOf what the core knows about a Service, if it is in this process: sentences then say why an endpoint is not used */
  constructor(startedAtMs = Date.now(), factsOf?: ServiceFactsOf) {
    this.startedAtMs = startedAtMs
    this.#factsOf = factsOf
  }

  /** Changes arrived, and wait for a sync. */
  onQueued({ services, node, serviceCidrs }: Changes, nowMs = performance.timeOrigin + performance.now()): void {
    if (services.size > 0 || node || serviceCidrs) this.#arrivedAtMs ??= nowMs
  }

  /** The data plane is not what it was after the last sync, and a sync of everything was asked for. */
  onDrift(reason: string): void {
    this.#drift ??= { noticedAt: new Date().toISOString(), reason }
  }

  /** The sync that is under way repaired what another program had done to these Services. */
  onRepaired(services: readonly string[]): void {
    this.#repaired = services
  }

  /** To be called after each sync. */
  onSync(report: SyncReport): void {
    const { view, changes, error } = report
    this.#count++
    if (changes.full) this.#full++
    const sync = this.#describe(report)
    this.#arrivedAtMs = undefined
    if (error === undefined) this.#succeeded(view, changes, sync)
    else this.#failed++
    this.#repaired = []
    this.#syncs.push(sync)
    if (this.#syncs.length > kept) this.#syncs.shift()
    for (const listener of this.#listeners) listener(sync, changes)
  }

  #succeeded(view: NodeView, changes: Changes, sync: LiveSync): void {
    // At the start everything is new, and nothing has changed.
    const isFirst = this.#view === undefined
    this.#view = view
    if (changes.full) {
      this.#drift = undefined
      this.#endpoints = 0
      for (const { endpoints } of view.services.values()) this.#endpoints += endpoints.length
    }
    for (const [path, { before, after }] of changes.services) {
      if (!changes.full) this.#endpoints += (after?.endpoints.length ?? 0) - (before?.endpoints.length ?? 0)
      if (!after) this.#changedBy.delete(path)
      else if (!isFirst) this.#changedBy.set(path, sync)
    }
    for (const path of this.#repaired) this.#changedBy.set(path, sync)
  }

  #describe({ changes, startedAtMs, durationMs, steps, error }: SyncReport): LiveSync {
    const firstTriggerMs = changes.triggers.reduce((first, { unixMs }) => Math.min(first, unixMs), Infinity)
    const services: ServiceChangeAnswer[] = []
    let comparable = maxComparedEndpoints
    for (const [path, change] of changes.services) {
      if (services.length === listed) break
      comparable -= (change.before?.endpoints.length ?? 0) + (change.after?.endpoints.length ?? 0)
      const isCompared = !changes.full && changes.services.size > 1 && comparable >= 0
      const sentence = isCompared ? differenceSentence(path, change, this.#factsOf) : undefined
      services.push({ ...changeAnswer(path, change), ...(sentence === undefined ? {} : { sentence }) })
    }
    for (const service of this.#repaired) {
      if (services.length === listed || changes.services.has(service)) continue
      const count = this.#view?.services.get(service)?.endpoints.length ?? 0
      services.push({ service, before: count, after: count })
    }
    const { timeline } = changes
    const times: SyncTimes = {
      ...after('trigger', startedAtMs, firstTriggerMs < Infinity ? firstTriggerMs : undefined),
      ...after('received', startedAtMs, timeline?.receivedAtMs),
      ...after('stored', startedAtMs, timeline?.committedAtMs),
      ...after('viewed', startedAtMs, timeline?.viewedAtMs),
      ...after('arrived', startedAtMs, this.#arrivedAtMs),
      steps: steps.map(({ name, startedAtMs: from, endedAtMs: to }) => ({
        name,
        from: inTenths(from - startedAtMs),
        to: inTenths(to - startedAtMs),
      })),
    }
    const sentence = this.#sentence(changes)
    return {
      number: this.#count,
      at: new Date(startedAtMs).toISOString(),
      durationMs: Math.round(durationMs * 100) / 100,
      ...(firstTriggerMs < Infinity ? { latencyMs: inTenths(startedAtMs + durationMs - firstTriggerMs) } : {}),
      full: changes.full,
      services,
      moreServices: Math.max(0, changes.services.size + this.#repaired.length - services.length),
      ...(error === undefined ? {} : { error: messageOf(error) }),
      times,
      ...(sentence === undefined ? {} : { sentence }),
    }
  }

  #sentence({ full, services, node, serviceCidrs }: Changes): string | undefined {
    if (full && this.#view === undefined) return 'Everything was synced for the first time'
    const [repaired] = this.#repaired
    if (repaired !== undefined) {
      const others = this.#repaired.length - 1
      return `Another program had changed the rules of ${repaired}${others > 0 ? ` and of ${others} more Services` : ''}: they were repaired`
    }
    if (this.#drift) return `Everything was compared with the data plane: ${this.#drift.reason}`
    const [[path, change] = []] = services
    if (path === undefined || !change) {
      return node ? 'The Node was changed' : serviceCidrs ? 'The ranges of cluster IPs were changed' : undefined
    }
    if (services.size > 1) return `${services.size} Services were changed`
    return differenceSentence(path, change, this.#factsOf)
  }

  /** As of the last sync that succeeded. */
  get view(): NodeView | undefined {
    return this.#view
  }

  /** The oldest first. */
  get syncs(): readonly LiveSync[] {
    return this.#syncs
  }

  /** The last sync that changed a Service; undefined if there was none since the first one. */
  lastChangeOf(service: string): LiveSync | undefined {
    return this.#changedBy.get(service)
  }

  get counts(): {
    readonly syncs: number
    readonly failedSyncs: number
    readonly fullSyncs: number
    readonly endpoints: number
  } {
    return { syncs: this.#count, failedSyncs: this.#failed, fullSyncs: this.#full, endpoints: this.#endpoints }
  }

  /** What another program did to the data plane that no sync has repaired yet. */
  get drift(): { readonly noticedAt: string; readonly reason: string } | undefined {
    return this.#drift
  }

  /** Returns the function that ends it. */
  onChange(listener: SyncListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

const inTenths = (ms: number): number => Math.round(ms * 10) / 10

const after = <Name extends string>(name: Name, startedAtMs: number, atMs: number | undefined) =>
  (atMs === undefined ? {} : { [name]: inTenths(atMs - startedAtMs) }) as { [key in Name]?: number }

const changeAnswer = (service: string, { before, after: now }: ServiceChange): ServiceChangeAnswer => ({
  service,
  ...(before ? { before: before.endpoints.length } : {}),
  ...(now ? { after: now.endpoints.length } : {}),
})

/** What happened to a Service on this node. Undefined if it has too many endpoints to compare. */
function differenceSentence(
  service: string,
  { before, after: now }: ServiceChange,
  factsOf: ServiceFactsOf | undefined,
): string | undefined {
  const [old, current] = [before?.endpoints ?? [], now?.endpoints ?? []]
  if (old.length + current.length > maxComparedEndpoints) return undefined
  const [wasUsed, isUsed] = [new Set(old.flatMap(addressesOf)), new Set(current.flatMap(addressesOf))]
  const gone = [...wasUsed].filter((ip) => !isUsed.has(ip))
  const facts = gone.length > 0 && now ? factsOf?.(service, current.length) : undefined
  return changeSentence({
    service,
    what: !before ? 'new' : !now ? 'deleted' : 'changed',
    added: [...isUsed].filter((ip) => !wasUsed.has(ip)),
    removed: gone.map((ip) => ({ ip, why: facts ? (facts.reasons.get(ip) ?? 'gone') : undefined })),
  })
}

const addressesOf = ({ ips }: NodeEndpoint): readonly string[] => [...ipsOf(ips, 'IPv4'), ...ipsOf(ips, 'IPv6')]

type NodeEndpoint = NonNullable<ServiceChange['after']>['endpoints'][number]
