import { setTimeout as delay } from 'node:timers/promises'
import { type Log, messageOf } from '@kpng/api'
import type { Backend, ChangeSet, ChangeSetSource, NodeView, SourceStatus, SyncReport } from '@kpng/client'
import { type CachedState, readCacheFile, writeCacheFile } from './cache-file.js'

export interface StateCacheOptions {
  readonly path: string
  readonly nodeName: string
  /** The API server or the core that the state comes from, as text. Resolves when it is known. */
  readonly origin: () => Promise<string>
  /** Asked whether rules of an earlier run still serve: then the cache is not needed. */
  readonly backend: Pick<Backend, 'hasRules'>
  /** Told while the state of the cache is served. */
  readonly status: SourceStatus
  readonly log: Log
  /** How long the source may take to answer before the cache is used. Default 5,000. */
  readonly answerWithinMs?: number
  /** How long after a change the file is written. Default 5,000. */
  readonly writeDelayMs?: number
  /** The least time between two writes. Default 60,000. */
  readonly writeIntervalMs?: number
  /**
   * How long a write pauses after each millisecond of work. A change takes several turns of the event loop, and without a pause it would wait
   * in each of them. Default 10.
   */
  readonly pauseMs?: number
}

/**
 * Keeps the last complete state of this node in a file, for a start without an API server or core.
 *
 * States: *waiting* for the source; *in use*, if the source has not answered in time, there are no rules, and the file is good; *unused*,
 * from the source's first answer on, which is compared with what was served meanwhile. Only an unused cache is written.
 */
export class StateCache {
  readonly #options: StateCacheOptions
  readonly #status: { savedAtMs: number | undefined } = { savedAtMs: undefined }
  #hasAnswered = false
  #view: NodeView | undefined
  #isDirty = false
  #failed = false
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()
  #writtenAtMs = Number.NEGATIVE_INFINITY

  constructor(options: StateCacheOptions) {
    this.#options = options
    options.status.stateCache = this.#status
  }

  /** The change sets of a source, after those of the cache if it is needed. */
  changeSets(source: ChangeSetSource): ChangeSetSource {
    const cache = this
    return async function* (request, signal): AsyncGenerator<ChangeSet> {
      const stream = source(request, signal)[Symbol.asyncIterator]()
      try {
        yield* cache.#untilAnswered(stream, signal)
        for (let step = await stream.next(); !step.done; step = await stream.next()) yield step.value
      } finally {
        await stream.return?.()
      }
    }
  }

  /** To be called after each sync. */
  onSync({ view, changes }: SyncReport): void {
    if (!this.#hasAnswered || (changes.services.size === 0 && !changes.node && !changes.serviceCidrs)) return
    this.#view = view
    this.#isDirty = true
    this.#schedule()
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#timer)
    await this.#writing
    if (this.#isDirty && !this.#failed) await this.#write()
  }

  /** Up to the first change set of the source. It is a function of its own so that nothing keeps these whole states in memory later. */
  async *#untilAnswered(stream: AsyncIterator<ChangeSet>, signal: AbortSignal): AsyncGenerator<ChangeSet> {
    const first = stream.next()
    const cached = await this.#whileWaitingFor(first)
    if (cached && !signal.aborted) {
      this.#use(cached)
      yield cached.changeSet
    }
    const { done, value } = await first
    if (done) return
    this.#answered()
    yield value
  }

  /** The cached state, if the source does not answer in time. */
  async #whileWaitingFor(first: Promise<unknown>): Promise<CachedState | undefined> {
    const answer = first.then(
      () => 'answered' as const,
      () => 'answered' as const,
    )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, this.#options.answerWithinMs ?? 5000, 'late')
    })
    const winner = await Promise.race([answer, late])
    clearTimeout(timer)
    if (winner === 'answered') return undefined
    const cached = await Promise.race([answer, this.#load()])
    return cached === 'answered' ? undefined : cached
  }

  async #load(): Promise<CachedState | undefined> {
    const { path, nodeName, backend, log } = this.#options
    try {
      if (await backend.hasRules?.()) {
        log.info(
          'The source has not answered yet. The rules of the last run stay until it does; the state cache is not used',
        )
        return undefined
      }
      const state = await readCacheFile(path, { node: nodeName, origin: await this.#options.origin() })
      if (!state) log.info('The source has not answered yet, and there is no state cache: waiting', { file: path })
      return state
    } catch (error) {
      log.warn('The state cache is ignored', { file: path, reason: messageOf(error) })
      return undefined
    }
  }

  #use({ savedAtMs, services }: CachedState): void {
    this.#status.savedAtMs = savedAtMs
    this.#options.log.warn(
      'The source has not answered yet: serving the Services of the state cache, which may be stale',
      {
        file: this.#options.path,
        savedAt: new Date(savedAtMs).toISOString(),
        services,
      },
    )
  }

  #answered(): void {
    this.#hasAnswered = true
    if (this.#status.savedAtMs === undefined) return
    this.#status.savedAtMs = undefined
    this.#options.log.info('The source has answered: the state cache is no longer in use')
  }

  #schedule(): void {
    if (this.#timer || this.#closing.signal.aborted) return
    const { writeDelayMs = 5000, writeIntervalMs = 60_000 } = this.#options
    const waitMs = Math.max(writeDelayMs, this.#writtenAtMs + writeIntervalMs - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#writing = this.#writing.then(() => this.#write())
    }, waitMs).unref()
  }

  /** The end does not wait for pauses. */
  async #pause(): Promise<void> {
    const { signal } = this.#closing
    await delay(this.#options.pauseMs ?? 10, undefined, { signal }).catch(() => {})
  }

  async #write(): Promise<void> {
    const { path, nodeName, log } = this.#options
    this.#isDirty = false
    this.#writtenAtMs = performance.now()
    try {
      const owner = { node: nodeName, origin: await this.#options.origin() }
      await writeCacheFile(path, owner, this.#view as NodeView, () => this.#pause())
      this.#failed = false
      log.detail(2, 'The state cache was written', {
        file: path,
        ms: Math.round(performance.now() - this.#writtenAtMs),
      })
    } catch (error) {
      this.#isDirty = true
      if (!this.#failed) {
        log.warn(
          'The state cache cannot be written: after a reboot without an API server this node would start without Services. Give another file with --state-cache, or none with --state-cache=',
          { file: path, error: messageOf(error) },
        )
      }
      this.#failed = true
      this.#schedule()
    }
  }
}
