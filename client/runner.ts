import { KpngError, type Log, messageOf } from '@kpng/api'
import type { Backend, Changes, NodeView, Runner, SyncStep } from './backend.js'
import type { ChangeSet, ChangeSetSource } from './change-set.js'
import { isNothing, mergeChanges, NodeState, noChanges } from './node-state.js'

export interface RunnerOptions {
  /** Where the changes come from: `changeSetsOverGrpc(options)`, or the store of this process. */
  readonly changeSets: ChangeSetSource
  /** The node whose view the backend gets. */
  readonly nodeName: string
  /** Where syncs and their failures are logged. */
  readonly log: Log
  /** Ends the run. The data plane stays as it is. */
  readonly signal: AbortSignal
  /** At least this long between the starts of two syncs; changes meanwhile come together. Default 0. */
  readonly minSyncIntervalMs?: number
  /** How long after a sync the data plane is checked as a whole. Default 0: never. */
  readonly fullSyncIntervalMs?: number
  /**
   * How long after a sync the backend is asked again though nothing has changed: it may look at what it alone knows of, such as
   * the machine's addresses. Default 0: never.
   */
  readonly syncIntervalMs?: number
  /** The first pause after a failed sync; it doubles with each further failure. Default 500. */
  readonly retryMs?: number
  /** The longest such pause. Default 30,000. */
  readonly maxRetryMs?: number
  /** Told about changes that wait for a sync, and when a sync begins: what waits too long is not healthy. */
  readonly onQueued?: (changes: Changes) => void
  /** Told when the backend asks for a sync of everything, and why: mostly because another program changed the data plane. */
  readonly onFullSyncRequested?: (reason: string) => void
  /** Told about each sync, for metrics and tracing. */
  readonly onSync?: (report: SyncReport) => void
  /** Whether backends should note their steps for the report. Default false. */
  readonly withSteps?: boolean
  /** Default: the machine's. */
  readonly clock?: Clock
}

/** The time, and who waits for it. */
export interface Clock {
  /** Unix time in milliseconds. Never goes back, even if somebody sets the machine's time. */
  now(): number
  /** Calls back once, after so many milliseconds. Returns the function that prevents it. */
  after(ms: number, callback: () => void): () => void
}

const machineClock: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

export interface SyncReport {
  /** The view that was synced. It changes with the next change set: copy what you keep. */
  readonly view: NodeView
  /** What the backend was told. */
  readonly changes: Changes
  /** Unix time. */
  readonly startedAtMs: number
  /** How long the backend took, in milliseconds. */
  readonly durationMs: number
  /** What the backend noted, in the order in which it ended. */
  readonly steps: readonly SyncStep[]
  /** Why it failed; missing when it did not. */
  readonly error?: unknown
}

/** Runs a backend until the signal is aborted: feeds it each change, and the whole view again after a failure. */
export async function runBackend(backend: Backend, options: RunnerOptions): Promise<void> {
  try {
    await new BackendRun(backend, options).run()
  } finally {
    await backend.close()
  }
}

/**
 * States: *waiting* for a change set or for a timer; *syncing*; *backing off* after a failed sync, while change sets are still
 * taken in, so that the next try starts from the newest view.
 */
class BackendRun implements Runner {
  readonly #backend: Backend
  readonly #options: RunnerOptions
  readonly #clock: Clock
  readonly #state: NodeState
  #changes: Changes = { ...noChanges, full: true }
  #known = false
  #failures = 0
  #notBefore = 0
  /** What the stream gave last, until it is taken in. */
  #arrived: ChangeSet | 'nothing' | 'end' = 'nothing'
  #wake: () => void = () => {}

  constructor(backend: Backend, options: RunnerOptions) {
    this.#backend = backend
    this.#options = options
    this.#clock = options.clock ?? machineClock
    this.#state = new NodeState(options.nodeName)
  }

  requestFullSync(reason: string): void {
    this.#options.log.info('The whole data plane will be synced', { reason })
    this.#tell(() => this.#options.onFullSyncRequested?.(reason))
    this.#changes = { ...this.#changes, full: true }
    this.#wake()
  }

  async run(): Promise<void> {
    const { changeSets, nodeName, signal, withSteps = false } = this.#options
    await this.#backend.setup(this)
    const stream = changeSets({ nodeName, timeline: withSteps }, signal)[Symbol.asyncIterator]()
    let lost: unknown
    const ask = () =>
      stream.next().then(
        ({ done, value }) => this.#arrive(done ? 'end' : value),
        (error) => {
          lost = error
          this.#arrive('end')
        },
      )
    void ask()
    while (!signal.aborted) {
      const due = this.#due()
      if (due !== undefined && due <= this.#clock.now()) {
        await this.#sync()
        continue
      }
      if (this.#arrived === 'nothing') await this.#wait(due)
      if (this.#arrived === 'end') break
      if (this.#arrived === 'nothing') continue
      this.#takeIn(this.#arrived)
      this.#arrived = 'nothing'
      void ask()
    }
    if (lost !== undefined && !signal.aborted) throw lost
  }

  #arrive(arrived: ChangeSet | 'end'): void {
    this.#arrived = arrived
    this.#wake()
  }

  #takeIn(changeSet: ChangeSet): void {
    const applied = this.#state.apply(changeSet)
    if (!isNothing(applied)) this.#tell(() => this.#options.onQueued?.(applied))
    this.#changes = mergeChanges(this.#changes, applied)
    this.#known = true
  }

  /** When the next sync is due, or undefined when there is nothing to sync. */
  #due(): number | undefined {
    if (!this.#known) return undefined
    if (!isNothing(this.#changes)) return this.#notBefore
    const { fullSyncIntervalMs = 0, syncIntervalMs = 0 } = this.#options
    const interval = fullSyncIntervalMs || syncIntervalMs
    return interval > 0 ? this.#notBefore + interval : undefined
  }

  /** Until something arrives, a full sync is asked for, or a sync is due. */
  async #wait(due: number | undefined): Promise<void> {
    let cancel = () => {}
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      if (due !== undefined) cancel = this.#clock.after(Math.max(1, due - this.#clock.now()), resolve)
    })
    cancel()
  }

  async #sync(): Promise<void> {
    const { log, minSyncIntervalMs = 0, fullSyncIntervalMs = 0, withSteps = false } = this.#options
    const changes = isNothing(this.#changes) ? { ...noChanges, full: fullSyncIntervalMs > 0 } : this.#changes
    const began = this.#clock.now()
    const steps: SyncStep[] = []
    this.#tell(() => this.#options.onQueued?.(noChanges))
    const report = () => ({
      view: this.#state,
      changes,
      startedAtMs: began,
      durationMs: this.#clock.now() - began,
      steps,
    })
    this.#changes = noChanges
    try {
      await this.#backend.sync(this.#state, changes, ...(withSteps ? [steps] : []))
    } catch (error) {
      this.#backOff(changes, error)
      this.#tell(() => this.#options.onSync?.({ ...report(), error }))
      return
    }
    this.#failures = 0
    this.#notBefore = began + minSyncIntervalMs
    const synced = report()
    log.detail(2, 'Synced', { services: changes.services.size, full: changes.full, ms: Math.round(synced.durationMs) })
    this.#tell(() => this.#options.onSync?.(synced))
  }

  /** An error in metrics or tracing must not stop the proxy. */
  #tell(observer: () => void): void {
    try {
      observer()
    } catch (error) {
      this.#options.log.error('A sync could not be recorded in metrics or traces', { error: messageOf(error) })
    }
  }

  #backOff(changes: Changes, error: unknown): void {
    const { log, retryMs = 500, maxRetryMs = 30_000 } = this.#options
    const retryInMs = Math.min(maxRetryMs, retryMs * 2 ** this.#failures)
    this.#failures++
    this.#notBefore = this.#clock.now() + retryInMs
    // What was to be synced is not forgotten: a request for a full sync may have come in meanwhile.
    this.#changes = { ...mergeChanges(changes, this.#changes), full: true }
    const code = error instanceof KpngError ? { code: error.code } : {}
    log.error('Sync failed; it will be tried again with the whole view', {
      error: messageOf(error),
      ...code,
      retryInMs,
    })
  }
}
