/** A signal that SIGINT and SIGTERM abort, until it is released. */
export function abortOnSignals(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const names = ['SIGINT', 'SIGTERM'] as const
  for (const name of names) process.on(name, abort)
  return {
    signal: controller.signal,
    release: () => {
      for (const name of names) process.off(name, abort)
    },
  }
}
