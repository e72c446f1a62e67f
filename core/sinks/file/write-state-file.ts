import type { Writable } from 'node:stream'
import type { Log } from '@kpng/api'
import type { Store } from '../../store/index.js'
import { type Output, outputFor } from './output.js'
import { StateText } from './state-text.js'

export interface WriteStateFileOptions {
  readonly store: Store
  /** The file, replaced as a whole. `-` or `/dev/stdout`: standard output, one YAML document a change. */
  readonly path: string
  readonly log: Log
  /** Ends it; what has not been written by then is written first. */
  readonly signal: AbortSignal
  /** Changes that come sooner are written together. Default 1000. */
  readonly minIntervalMs?: number
  /** After a failure it tries again at the next change, or when so much time has passed. Default 10,000. */
  readonly retryMs?: number
  /** Default: the process's own. */
  readonly standardOutput?: Writable
}

/**
 * Keeps a file equal to the store, in the layout of Go kpng's state file, until the signal is aborted. Nothing is written before the
 * store is synced. Rejects when the file cannot be written at all; once it could, failures are logged and it goes on trying.
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
        if (!failing) log.error('The state file could not be written. It will be tried again', { error })
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

  /** Returns false when the file says it all already: endpoints without a service, for instance, are not in it. */
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

/** Waits for changes of the store, without missing those that come while nobody waits. */
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

  /** Returns when it is so, when the time is over, or at the end. */
  async until(isSo: () => boolean, timeoutMs?: number): Promise<void> {
    const end = timeoutMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeoutMs
    while (!isSo() && !this.#signal.aborted && Date.now() < end) await this.#woken(end)
  }

  async pause(timeMs: number): Promise<void> {
    await this.until(() => false, timeMs)
  }

  close(): void {
    this.#stop()
  }

  #woken(end: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = Number.isFinite(end) ? setTimeout(resolve, Math.max(1, end - Date.now())) : undefined
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
