import { type AgentStatus, KpngError, messageOf, type NodeRow } from '@kpng/api'
import type { Command } from 'commander'
import { ask, socketOf, withSocketFlags } from './ask.js'
import { type Flags, type MakeContext, textFlag } from './context.js'
import { fleetPrinted, isWell } from './fleet.js'
import { addExamples, addExitCodes } from './help.js'
import { outputOption, type Printed, printAnswer } from './output.js'

// `kpng status`: how a kpng is, or with `--all` those of all nodes.

export function addStatus(program: Command, makeContext: MakeContext): void {
  const command = withSocketFlags(
    program.command('status').description('say how the kpng on this node is: source, last change, errors, counts'),
  )
    .option('--all', 'ask the core on this machine how the kpng of every node is')
    .option('--wait [duration]', 'wait until all is well, at most this long (default: 1m)')
    .option('-w, --watch', 'go on, and print it again when it changes')
    .addOption(outputOption('text', 'name', 'json', 'yaml'))
  addExamples(command, 'kpng status --wait 30s', 'kpng status --all')
  addExitCodes(command, 'the last sync succeeded and the state is up to date', 'it is not so')
  command.action(async () => {
    const flags = command.optsWithGlobals()
    const { signal } = await makeContext(flags)
    const socket = await socketOf(flags, Boolean(flags.all))
    const read = () => (flags.all ? readFleet({ ...flags, agentSocket: socket }) : readStatus(flags))
    const found = flags.wait ? await waitUntilWell(read, await waitMs(flags), signal) : await read()
    await printAnswer(flags, found.printed)
    // For scripts: something is wrong, though the question was answered.
    if (!found.isWell) process.exitCode = 1
    if (flags.watch) await watch(found, read, flags, signal)
  })
}

interface Found {
  readonly isWell: boolean
  readonly printed: Printed
  /** Changes if something is to be printed again. */
  readonly key: string
}

async function readStatus(flags: Flags): Promise<Found> {
  const [status, { isHealthy, statusText }] = await Promise.all([
    ask<AgentStatus>(flags, '/v1/status'),
    import('@kpng/node/agent-api'),
  ])
  const asked = `${status.role === 'core' ? 'the core on' : 'the agent of'} ${status.node}, by its socket ${await socketOf(flags)}`
  const { now: _, source, ...rest } = status
  const watches = Object.entries(source?.watches ?? {}).map(([name, { connected }]) => [name, connected])
  return {
    isWell: isHealthy(status),
    key: JSON.stringify([rest, source?.stale, watches]),
    printed: {
      value: { asked, ...status },
      names: () => [`node/${status.node}`],
      text: () => `${statusText(status, asked)}`,
    },
  }
}

async function readFleet(flags: Flags): Promise<Found> {
  const { role } = await ask<AgentStatus>(flags, '/v1/status')
  if (role !== 'core') {
    throw new KpngError(
      'usage',
      'A node knows only itself. Ask a core, on its machine or with --agent-socket; or all nodes, with kubectl kpng status --all.',
    )
  }
  const { nodes } = await ask<{ nodes: readonly NodeRow[] }>(flags, '/v1/nodes')
  return {
    isWell: nodes.every(isWell),
    key: JSON.stringify(nodes.map(({ revision: _, ...node }) => node)),
    printed: await fleetPrinted(nodes),
  }
}

async function waitMs(flags: Flags): Promise<number> {
  const { milliseconds } = await import('@kpng/client')
  return milliseconds('--wait', typeof flags.wait === 'string' ? (textFlag(flags, 'wait') ?? '1m') : '1m')
}

const askAgainMs = 250

/** The first good answer, or the last one. A kpng that is not there yet is waited for too. */
async function waitUntilWell(read: () => Promise<Found>, limitMs: number, signal: AbortSignal): Promise<Found> {
  const { pause } = await import('@kpng/client')
  const deadline = performance.now() + limitMs
  for (;;) {
    const found = await read().catch((error: unknown) => {
      if (error instanceof KpngError && error.code === 'unavailable') return error
      throw error
    })
    if (!(found instanceof KpngError) && found.isWell) return found
    if (performance.now() >= deadline || signal.aborted) {
      if (!(found instanceof KpngError)) return found
      throw new KpngError('unavailable', `Waited ${limitMs / 1000} s. ${messageOf(found)}`, { cause: found })
    }
    await pause(Math.min(askAgainMs, Math.max(1, deadline - performance.now())), signal)
  }
}

const watchIntervalMs = 1000

async function watch(first: Found, read: () => Promise<Found>, flags: Flags, signal: AbortSignal): Promise<void> {
  const { pause } = await import('@kpng/client')
  let shown = first
  for (;;) {
    await pause(watchIntervalMs, signal)
    if (signal.aborted) return
    const found = await read()
    if (found.key === shown.key) continue
    shown = found
    await printAnswer(flags, found.printed)
    process.exitCode = found.isWell ? 0 : 1
  }
}
