import { KpngError } from '@kpng/api'
import type { ChangeSetSource } from '@kpng/client'
import type { Context, Flags } from '../context.js'
import { exitInTime } from '../exit.js'
import type { BackendCommand } from './backend.js'

/** Runs a backend until the signal is aborted or, with `--once`, until the first sync. */
export async function runOn(
  changeSets: ChangeSetSource,
  command: BackendCommand,
  flags: Flags,
  context: Context,
): Promise<void> {
  const { runBackend } = await import('@kpng/client')
  const { startAgent } = await import('../agent/run.js')
  const { log, nodeName, events } = context
  exitInTime(context.signal, log)
  const done = new AbortController()
  const signal = AbortSignal.any([context.signal, done.signal])
  const backend = await command.create(flags, context)
  // A node agent says it itself, and what it does instead.
  let warnsOfNode = context.resolved === undefined
  const agent = await startAgent(backend, command.agent?.mode ?? command.name, flags, { ...context, signal })
  try {
    if (signal.aborted) return
    await runBackend(backend, {
      changeSets: agent.changeSets(changeSets),
      nodeName,
      log,
      signal,
      ...agent.runner,
      onSync: (report) => {
        agent.runner.onSync?.(report)
        if (warnsOfNode && report.view.node === undefined)
          log.warn('There is no Node object of this name: no endpoint is known to be on this node', { node: nodeName })
        warnsOfNode = false
        events.countNodeLocalEvents(report.changes.services.size)
        if (flags.once && report.error === undefined) done.abort()
      },
    })
    // Stopped from within, for a reason that the exit code must show.
    if (context.signal.reason instanceof KpngError) throw context.signal.reason
  } finally {
    done.abort()
    await agent.close()
  }
}
