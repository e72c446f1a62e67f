import type { ChangeSetSource } from '@kpng/client'
import type { Context, Flags } from '../context.js'
import type { BackendCommand } from './backend.js'

/** Runs a backend on change sets from wherever they come, until the signal is aborted or, with `--once`, the first sync. */
export async function runOn(
  changeSets: ChangeSetSource,
  command: BackendCommand,
  flags: Flags,
  context: Context,
): Promise<void> {
  const { runBackend } = await import('@kpng/client')
  const { log, signal, nodeName, events } = context
  const backend = await command.create(flags, context)
  const done = new AbortController()
  await runBackend(backend, {
    changeSets,
    nodeName,
    log,
    signal: AbortSignal.any([signal, done.signal]),
    onSync: ({ changes, error }) => {
      events.countNodeLocalEvents(changes.services.size)
      if (flags.once && error === undefined) done.abort()
    },
  })
}
