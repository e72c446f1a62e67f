import type { Writable } from 'node:stream'
import type { Log } from '@kpng/api'
import type { Store } from '../../store/index.js'
import { type Output, outputFor } from './output.js'
import { StateText } from './state-text.js'

export interface WriteStateFileOptions {
  readonly store: Store
  /** The file, replaced as a whole. `-` or `/dev/stdout`: standard output, one YAML document per change. */
  readonly path: string
  readonly log: Log
  /** Aborting it ends the sink, after changes that are not written yet have been written. */
  readonly signal: AbortSignal
  /** The least time between two writes. Changes in between are written together. Default 1000. */
  readonly minIntervalMs?: number
  /** After a failure it retries at the next change, at the latest after this time. Default 10,000. */
  readonly retryMs?: number
  /** Default: the process's own. */
  readonly standardOutput?: Writable
}

/**
 * Keeps a file equal to the store, in the format of Go kpng's state file, until the signal is aborted. Nothing is written before the
 * store is synced. Rejects if the first write fails; later failures are logged and retried.
 */
export async function writeStateFile(options: WriteStateFileOptions): Promise<void> {
  const { store, path, log, signal, minIntervalMs = 1000, retryMs = 10_000 } = options
  const output = await outputFor(path, options.standardOutput ?? process.stdout)
  const writer = new Writer(store, output)
  const changes = new Changes(store, signal)
  let failing = false
  try {
    for (;;) {
      await changes.until(() => store.synced && writer.isBehind, failing ? retryMs : undefined)
      try {
        if (await writer.write()) log.detail(2, 'Wrote the state', { path, revision: store.revision })
        if (failing) log.info('The state file can be written again', { path })
        failing = false
      } catch (error) {
        if (!output.canRecover || !writer.everWrote) throw error
        if (!failing) log.error('The state file cannot be written; retrying', { error })
        failing = true
      }
      if (signal.aborted) return
      await changes.pause(minIntervalMs)
    }
  } finally {
    changes.close()
  }
}

class Writer {
  readonly #store: Store
  readonly #output: Output
  readonly #text = new StateText()
  #tried: number | undefined
  #written: readonly string[] | undefined

  constructor(store: Store, output: Output) {
    this.#store = store
    this.#output = output
  }

  get isBehind(): boolean {
    return this.#tried !== this.#store.revision
  }

  get everWrote(): boolean {
    return this.#written !== undefined
  }

  /** Returns false if the file is up to date already: endpoints without a service, for instance, are not in it. */
  async write(): Promise<boolean> {
    if (!this.#store.synced) return false
    this.#tried = this.#store.revision
    const parts = this.#text.render(this.#store)
    if (this.#written?.length === parts.length && parts.every((part, index) => part === this.#written?.[index]))
      return false
    await this.#output.write(parts)
    this.#written = parts
    return true
  }
}

/** Waits for changes of the store. */
class Changes {
  readonly #signal: AbortSignal
  readonly #stop: () => void
  #wake: () => void = () => {}

  constructor(store: Store, signal: AbortSignal) {
    this.#signal = signal
    const unsubscribe = store.onChange(() => this.#wake())
    const onAbort = () => this.#wake()
    signal.addEventListener('abort', onAbort)
    this.#stop = () => {
      unsubscribe()
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Returns when the condition holds, when the time is over, or when the signal is aborted. */
  async until(holds: () => boolean, timeoutMs?: number): Promise<void> {
    const end = timeoutMs === undefined ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs
    while (!holds() && !this.#signal.aborted && performance.now() < end) await this.#woken(end)
  }

  async pause(timeMs: number): Promise<void> {
    await this.until(() => false, timeMs)
  }

  close(): void {
    this.#stop()
  }

  #woken(end: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = Number.isFinite(end) ? setTimeout(resolve, Math.max(1, end - performance.now())) : undefined
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
