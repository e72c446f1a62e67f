import { type Family, KpngError, type Log, messageOf } from '@kpng/api'
import {
  asStep,
  type Backend,
  type BackendFeatures,
  type Changes,
  type FrontendAddress,
  type HeldFrontend,
  type NodeView,
  type Observations,
  type Runner,
  type StepAttributes,
  type SyncStep,
} from '@kpng/client'
import { DriftWatch } from './drift-watch.js'
import { briefly } from './follow-up.js'
import type { FrontendChanges, FrontendTable } from './frontend-table.js'
import { type FlowSelection, StaleFlowRemoval } from './stale-flow-removal.js'
import { allFlowChecks, type Flow, flowChecks } from './stale-flows.js'

// How every backend keeps a data plane in step with a view. A backend brings a `DataPlane`: what it wants to write (`plan`), how it
// writes, reads and removes it. This file does the rest, in the order in which a reader meets it:
//
//   setup     needs checked → lock taken → data plane opened → watch for changes by others
//   sync      view → frontends → plan (changes, or everything beside what was read) → write → stale UDP flows, released clients
//   the first sync that succeeds   what other backends left on this machine is removed
//   a look    somebody else changed our rules → the runner is asked for a full sync
//   a check   a sync of everything without a change: for data planes that cannot tell what others changed
//   close     the watch ends, work under way is waited for, the lock is released; rules stay

/** What a process must have to use a data plane. */
export interface Needs {
  /** Capabilities of Linux, such as CAP_NET_ADMIN. */
  readonly rights: readonly string[]
  /** Programs that must be in PATH. */
  readonly programs: readonly string[]
}

/** What the skeleton asks of the machine; `linuxHost` of @kpng/linux is one. */
export interface Host {
  /** Rejects with a sentence that says what is missing. */
  check(needs: Needs, dataPlane: string): void | Promise<void>
  /** Takes a name that only one process can hold, or rejects with a sentence that says who holds it. */
  lock(name: string, log: Log): Promise<{ release(): Promise<void> }>
  /** The addresses at which other machines reach this one. */
  addresses(): readonly string[]
  /** Deletes UDP flows of the kernel and resolves with their number. Missing: flows are left alone. */
  deleteFlows?(selection: FlowSelection, isStale: (flow: Flow) => boolean): Promise<number>
}

/** What a sync should write. */
export type Wanted<Held> = (
  | {
      /** The data plane holds what the last write left: only what changed must be written. */
      readonly full: false
    }
  | {
      /** It is unknown what the data plane holds: everything must be compared with it. */
      readonly full: true
      /** What `read` finds. It is being read while the plan is made. */
      readonly held: Promise<Held>
    }
) & {
  readonly view: NodeView
  readonly changes: Changes
  /** Which frontends differ since the last sync. All of them are in the table. */
  readonly changed: FrontendChanges
  /** Nothing changed; the data plane is only compared. */
  readonly isCheck: boolean
}

/** What a write found. */
export interface Written {
  /** Services (`namespace/name`) that were not as the last write had left them. */
  readonly repaired?: Iterable<string>
  /** False: something is missing that may come later, so the next check comes sooner. */
  readonly isComplete?: boolean
}

/** One way of carrying traffic: what a backend brings. Its functions are never called two at a time, except `held` and `drift`. */
export interface DataPlane<Held, Plan> {
  /** As sentences name it: `iptables`. */
  readonly name: string
  readonly needs: Needs
  /** What only one process may write, such as `nft table kpng`. Missing: each process has its own. */
  readonly lockName?: string
  /** The families that it can serve on this machine. Known after `open`; asked before each sync. */
  readonly families: readonly Family[]
  /** Default: no counters. */
  readonly observations?: Observations
  /** Checks the machine and opens what is needed; the error says what is missing. `onNotice` makes the next look come at once. */
  open(onNotice: () => void): Promise<void>
  /** Before each sync: rejects if nothing can be written now. */
  prepare?(view: NodeView): Promise<void>
  /** What is on the machine. */
  read(): Promise<Held>
  plan(wanted: Wanted<Held>): Plan | Promise<Plan>
  write(plan: Plan, steps: SyncStep[] | undefined): Promise<Written | undefined>
  /** After a write: lets go of what nobody needs any more. Syncs wait for it only briefly. */
  release?(): Promise<void> | undefined
  /** What others changed since the last write, as a sentence; undefined if nothing. */
  drift?(): Promise<string | undefined> | string | undefined
  /** Removes everything of this data plane from the machine. It is not open then. */
  remove(): Promise<void>
  /** Frees sockets and files. Also called if `open` failed, and more than once. */
  close(): Promise<void> | void
  features(): BackendFeatures
  /** Reads back what it really holds for one frontend. */
  held?(frontend: FrontendAddress): Promise<HeldFrontend | undefined>
  /** Whether rules of an earlier run are on the machine and serve. */
  hasRules?(): Promise<boolean>
}

/** What a backend leaves on a machine when its process ends, seen by the backend that comes after it. */
export interface Leftovers {
  /** Whose: `to-ebpf`. */
  readonly of: string
  /** As `DataPlane.lockName`: if another process holds it, what is there is in use and stays. */
  readonly lockName?: string
  /** What is there: tables, chains, links, pins, interfaces, sysctls, by name. Empty: nothing. */
  find(): Promise<readonly string[]>
  /** Removes all of it. */
  remove(): Promise<void>
}

export interface SkeletonOptions {
  /** Made with the options of the data plane. */
  readonly frontends: FrontendTable
  readonly host: Host
  readonly log: Log
  /** How often `drift` is asked; less often where that takes long. Default 0: never. */
  readonly driftCheckIntervalMs?: number
  /** How often everything is compared without a change. Default 0: never. */
  readonly checkIntervalMs?: number
  /** Whether UDP flows to endpoints that no longer serve are deleted. Default true. */
  readonly deleteStaleFlows?: boolean
  /** Of other backends: removed after the first sync that succeeds. Default: nothing is looked for. */
  readonly leftovers?: readonly Leftovers[]
}

/** A backend that builds on a table and shows it, so that metrics, health checks and `kpng explain` need none of their own. */
export interface FrontendBackend extends Backend {
  /** As of the last sync. */
  readonly frontends: FrontendTable
}

export type BackendState = 'unknown' | 'syncing' | 'in step' | 'closed'

export interface SteppedBackend extends FrontendBackend {
  readonly state: BackendState
  /** Resolves when what the last sync left to be done beside it is done: what other backends left is gone. */
  settled(): Promise<void>
  readonly observations: Observations
  features(): BackendFeatures
  held(frontend: FrontendAddress): Promise<HeldFrontend | undefined>
  hasRules(): Promise<boolean>
}

/** A backend that keeps a data plane in step. */
export const backendOf = <Held, Plan>(plane: DataPlane<Held, Plan>, options: SkeletonOptions): SteppedBackend =>
  new Stepped(plane, options)

const noChanges: Changes = { full: false, services: new Map(), node: false, serviceCidrs: false, triggers: [] }

/** While something is missing, the first check comes this soon; each later one takes twice as long, up to the interval. */
const firstCheckMs = 1000

/**
 * States: *unknown*, until a full sync has compared everything with the machine, and again after a failure; *syncing*; *in step*, when a
 * change writes only what changed; *closed*.
 */
class Stepped<Held, Plan> implements SteppedBackend {
  readonly frontends: FrontendTable
  readonly observations: Observations
  readonly #plane: DataPlane<Held, Plan>
  readonly #options: SkeletonOptions
  readonly #flows: StaleFlowRemoval | undefined
  #state: BackendState = 'unknown'
  #isOpen = false
  #hasSynced = false
  /** Of the last sync. */
  #view: NodeView | undefined
  #syncs = 0
  #lock: { release(): Promise<void> } | undefined
  #watch: DriftWatch | undefined
  #checkTimer: NodeJS.Timeout | undefined
  #checkDelayMs = firstCheckMs
  #cleaningUp: Promise<void> | undefined
  /** Syncs, checks and the end happen one after the other. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(plane: DataPlane<Held, Plan>, options: SkeletonOptions) {
    const { frontends, host, log, deleteStaleFlows = true } = options
    this.#plane = plane
    this.#options = options
    this.frontends = frontends
    this.observations = plane.observations ?? { listener: {} }
    if (deleteStaleFlows && host.deleteFlows) {
      this.#flows = new StaleFlowRemoval({
        ...{ table: frontends, log },
        deleteFlows: host.deleteFlows,
        onRemoved: (...seen) => this.observations.listener.staleFlows?.(...seen),
      })
    }
  }

  get state(): BackendState {
    return this.#state
  }

  async setup(runner: Runner): Promise<void> {
    const { host, log, driftCheckIntervalMs = 0 } = this.#options
    const { name, needs, lockName } = this.#plane
    await host.check(needs, name)
    if (lockName !== undefined) this.#lock = await host.lock(lockName, log)
    await this.#plane.open(() => this.#watch?.lookNow())
    this.#isOpen = true
    if (!this.#plane.drift) return
    this.#watch = new DriftWatch({
      ...{ log, intervalMs: driftCheckIntervalMs },
      lastSync: () => (this.#state === 'in step' ? this.#syncs : undefined),
      look: async () => this.#plane.drift?.(),
      onDrift: (reason) => runner.requestFullSync(reason),
    })
  }

  async sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void> {
    let isComplete = false
    try {
      isComplete = (await this.#inTurn(() => this.#sync(view, changes, false, steps))).isComplete ?? true
    } finally {
      this.#checkDelayMs = firstCheckMs
      this.#checkLater(isComplete)
    }
  }

  async settled(): Promise<void> {
    await this.#cleaningUp
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    clearTimeout(this.#checkTimer)
    await this.#watch?.close()
    await this.#inTurn(async () => {
      this.#isOpen = false
      await this.#cleaningUp
      await this.#flows?.close()
      await this.#plane.close()
      await this.#lock?.release()
      this.#lock = undefined
    })
  }

  async cleanup(): Promise<void> {
    await this.close()
    await this.#plane.remove()
  }

  features(): BackendFeatures {
    return this.#plane.features()
  }

  async held(frontend: FrontendAddress): Promise<HeldFrontend | undefined> {
    this.#checkOpen()
    return await this.#plane.held?.(frontend)
  }

  async hasRules(): Promise<boolean> {
    this.#checkOpen()
    return (await this.#plane.hasRules?.()) ?? false
  }

  async #sync(view: NodeView, changes: Changes, isCheck: boolean, steps?: SyncStep[]): Promise<Written> {
    this.#checkOpen()
    const full = changes.full || this.#state !== 'in step'
    this.#become('syncing')
    this.#syncs++
    try {
      await this.#plane.prepare?.(view)
      const changed = this.frontends.apply(view, changes, this.#machine())
      this.#view = view
      const common = { view, changes, changed, isCheck }
      const plan = await this.#plane.plan(full ? { ...common, full, held: this.#read() } : { ...common, full })
      const written = (await this.#plane.write(plan, steps)) ?? {}
      this.#become('in step')
      if (full || isCheck) this.#tellRepaired(written, changes)
      if (!this.#hasSynced) this.#cleaningUp = this.#removeLeftovers()
      this.#hasSynced = true
      await this.#follow(full, changed, steps)
      return written
    } finally {
      if (this.#state === 'syncing') this.#become('unknown')
    }
  }

  /** A backend that is closed stays closed. */
  #become(state: BackendState): void {
    if (this.#state !== 'closed') this.#state = state
  }

  /** The plan waits for it; if it waits for something else first, a failure must not end the process. */
  #read(): Promise<Held> {
    const held = this.#plane.read()
    held.catch(() => {})
    return held
  }

  /** The addresses are read only if the Node object has none. */
  #machine() {
    const { host } = this.#options
    return {
      families: this.#plane.families,
      get addresses() {
        return host.addresses()
      },
    }
  }

  /** What must be done when the rules no longer use the endpoints that are gone. The next changes are more urgent. */
  async #follow(full: boolean, changed: FrontendChanges, steps: SyncStep[] | undefined): Promise<void> {
    const released = this.#plane.release?.()
    // Nearly all changes are of TCP, which has no stale flows.
    const others = changed.frontends.filter(({ before, after }) => (after ?? before)?.protocol !== 'tcp')
    const checks = full ? allFlowChecks(this.frontends) : others.length > 0 ? flowChecks(others) : []
    if (this.#flows && checks.length > 0) {
      const removal = this.#flows.remove(checks)
      const attributes: StepAttributes = {}
      await asStep(steps, 'conntrack', attributes, async () => {
        const deleted = await briefly(removal)
        if (deleted === undefined) attributes['kpng.continues'] = true
        else attributes['kpng.deleted'] = deleted
      })
    }
    if (released) await briefly(released)
  }

  /** Services that were changed in the cluster at the same time are left out: what was written for them is that change. */
  #tellRepaired({ repaired = [] }: Written, { services }: Changes): void {
    if (!this.#hasSynced) return
    const others = [...new Set(repaired)].filter((service) => !services.has(service))
    if (others.length > 0) this.observations.listener.repaired?.(others)
  }

  /** What another backend left would go on sending clients to old endpoints, or take packets before our rules see them. */
  async #removeLeftovers(): Promise<void> {
    const { leftovers = [], log } = this.#options
    for (const each of leftovers) {
      try {
        const found = await each.find()
        if (found.length > 0) await this.#removeUnlessUsed(each, found)
      } catch (error) {
        log.warn('What another backend may have left could not be removed; run `kpng cleanup`', {
          of: each.of,
          error: messageOf(error),
        })
      }
    }
  }

  async #removeUnlessUsed({ of, lockName, remove }: Leftovers, found: readonly string[]): Promise<void> {
    const { host, log } = this.#options
    const needsLock = lockName !== undefined && lockName !== this.#plane.lockName
    const lock = needsLock ? await host.lock(lockName, log) : undefined
    try {
      await remove()
      log.info('Removed what another backend had left', { of, found: found.slice(0, 20).join(', ') })
    } finally {
      await lock?.release()
    }
  }

  #checkLater(isComplete: boolean): void {
    const { checkIntervalMs = 0 } = this.#options
    clearTimeout(this.#checkTimer)
    if (checkIntervalMs === 0 || this.#state === 'closed') return
    const delayMs = isComplete ? checkIntervalMs : Math.min(this.#checkDelayMs, checkIntervalMs)
    this.#checkDelayMs = isComplete ? firstCheckMs : this.#checkDelayMs * 2
    this.#checkTimer = setTimeout(() => void this.#check(), delayMs).unref()
  }

  /** Finds what others changed where the data plane cannot tell, and what came late. */
  async #check(): Promise<void> {
    let isComplete = false
    try {
      isComplete = await this.#inTurn(async () => {
        if (this.#state === 'closed' || !this.#view) return false
        const written = await this.#sync(this.#view, noChanges, true)
        return written.isComplete ?? true
      })
    } catch (error) {
      const { log } = this.#options
      log.error(`The check of ${this.#plane.name} failed; it is tried again`, { error: messageOf(error) })
    }
    this.#checkLater(isComplete)
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    return turn
  }

  #checkOpen(): void {
    if (this.#isOpen) return
    throw new KpngError('usage', `The ${this.#plane.name} backend was not set up. Call setup() first.`)
  }
}
