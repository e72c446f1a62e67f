import type { Store } from '@kpng/core/store'
import type { Context, Flags } from './context.js'
import type { SourceCommand } from './sources/source.js'

/** What the state flows into: runs until the signal is aborted. */
export type Flow = (store: Store, context: Context) => Promise<void>

/**
 * Runs a source and what it flows into. The source comes first, so that a mistake in its flags or files is reported before anything is
 * served or written. If one of them ends or fails, the other is stopped and awaited.
 */
export async function runPipeline(
  source: Pick<SourceCommand, 'start'>,
  flags: Flags,
  sink: Flow,
  context: Context,
): Promise<void> {
  const { Store } = await import('@kpng/core/store')
  const { Skips } = await import('@kpng/core/sources/skips')
  const state = { store: new Store(), skips: new Skips(context.log) }
  const ended = new AbortController()
  const inner = { ...context, state, signal: AbortSignal.any([context.signal, ended.signal]) }
  const started = await source.start(flags, state, inner)
  const parts = [started.ended, sink(state.store, inner)]
  try {
    await Promise.race(parts)
  } finally {
    ended.abort()
    await Promise.allSettled(parts)
  }
  await Promise.all(parts)
}
