import type { Store } from '@kpng/core/store'
import type { Context, Flags } from './context.js'
import type { SourceCommand } from './sources/source.js'

/** What the state flows into: starts, calls `ready`, and runs until the signal is aborted. */
export type Flow = (store: Store, context: Context, ready: () => void) => Promise<void>

/**
 * Runs a source and what it flows into. The sink comes first, so that what is wrong with it (a port in use) is said before
 * anything is read. When one of them ends or fails, the other is ended too, and waited for.
 */
export async function runPipeline(source: SourceCommand, flags: Flags, sink: Flow, context: Context): Promise<void> {
  const { Store } = await import('@kpng/core/store')
  const { Skips } = await import('@kpng/core/sources/skips')
  const state = { store: new Store(), skips: new Skips(context.log) }
  const ended = new AbortController()
  const inner = { ...context, state, signal: AbortSignal.any([context.signal, ended.signal]) }
  let begin = () => {}
  const ready = new Promise<void>((resolve) => {
    begin = resolve
  })
  const sinking = sink(state.store, inner, begin)
  const parts = [sinking]
  try {
    await Promise.race([ready, sinking])
    if (!inner.signal.aborted) parts.push(source.run(flags, state, inner))
    await Promise.race(parts)
  } finally {
    ended.abort()
    await Promise.allSettled(parts)
  }
  await Promise.all(parts)
}
