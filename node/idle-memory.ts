import { type Log, messageOf } from '@kpng/api'
import { loadLibc, releaseProgramPages } from '@kpng/linux'
import { residentBytes } from './resident-memory.js'

export interface IdleMemoryOptions {
  readonly log: Log
  /** Ends the wait. */
  readonly signal: AbortSignal
  /** How long after the first sync memory is given back at the earliest, in milliseconds. Default 15,000. */
  readonly afterMs?: number
  /** The same after a later sync. Long, since memory that changes need all the time would be given back in vain. Default 600,000. */
  readonly againAfterMs?: number
  /** How long no sync must have happened then, in milliseconds. Default 1000. */
  readonly quietMs?: number
  /** Releases pages of the program that are not needed now. Default: `releaseProgramPages`. */
  readonly releasePages?: () => Promise<void>
}

/** By how many bytes the resident set must have grown since the last time. Less is not worth a pause. */
const worthwhile = 32e6

/**
 * Gives back memory that only the start needed, or a burst of changes: V8 keeps the space in which it made many objects. A collection of
 * everything takes up to 0.3 s with 5,000 Services, so it waits until nothing is synced.
 * @returns to be called after each sync
 */
export function releaseMemoryWhenIdle(options: IdleMemoryOptions): () => void {
  const { log, signal, afterMs = 15_000, againAfterMs = 600_000, quietMs = 1000 } = options
  const { releasePages = releaseProgramPages } = options
  let lastSync = 0
  let timer: NodeJS.Timeout | undefined
  /** The resident set after the last time. */
  let level = Number.NEGATIVE_INFINITY
  signal.addEventListener('abort', () => clearTimeout(timer), { once: true })
  const look = () => {
    const quietFor = performance.now() - lastSync
    timer = quietFor < quietMs ? setTimeout(look, quietMs - quietFor).unref() : undefined
    const before = residentBytes()
    if (timer || before === undefined || before < level + worthwhile) return
    collect()
      .then(async () => {
        // Without koffi, or if /proc cannot be read, the pages stay. Everything else was given back.
        await releasePages().catch((error) =>
          log.detail(1, 'Pages of the program cannot be released', { error: messageOf(error) }),
        )
        level = residentBytes() ?? before
        log.detail(2, 'Unused memory was given back', { megabytes: Math.round((before - level) / 1e6) })
      })
      .catch((error) => log.detail(1, 'Unused memory cannot be given back', { error: messageOf(error) }))
  }
  return () => {
    lastSync = performance.now()
    if (!signal.aborted) timer ??= setTimeout(look, level < 0 ? afterMs : againAfterMs).unref()
  }
}

/** Collects everything, and shrinks the heap. Then the C library gives back what it has free: strings and buffers were there too. */
async function collect(): Promise<void> {
  const { Session } = await import('node:inspector')
  const session = new Session()
  session.connect()
  const error = await new Promise<Error | null>((resolve) => session.post('HeapProfiler.collectGarbage', resolve))
  // Node 20 freezes if a session is closed in the callback of a request.
  await new Promise((resolve) => setImmediate(resolve))
  session.disconnect()
  if (error) throw error
  await loadLibc().then(
    ({ mallocTrim }) => mallocTrim?.(0),
    // Not Linux, or without koffi.
    () => {},
  )
}
