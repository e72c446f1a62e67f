import type { Log } from '@kpng/api'

/** A signal that is aborted when the process is asked to stop (SIGINT, SIGTERM). Asked twice, the process exits at once. */
export function stopOnSignals(log: Log): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(1)
      log.info('Stopping', { signal: name })
      stop.abort(new Error(`stopped by ${name}`))
    })
  }
  return stop.signal
}

/** Waits; returns early, without an error, when the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done, { once: true })
  })
}
