import { readFileSync } from 'node:fs'
import { type Context, type Flags, textFlag } from './context.js'

/** Exit codes: 0 done, 1 failed, 2 wrong usage. */
export async function main(args: readonly string[], name = 'kpng'): Promise<number> {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  if (args.length === 1 && args[0] === '--version') {
    console.log(version)
    return 0
  }
  // A reader that has seen enough (`kpng-json | head`) is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  const { buildProgram, CommanderError } = await import('./program.js')
  const program = buildProgram(name, version, (flags) => contextFrom(flags, version))
  try {
    if (args[0] === 'completion' || args[0] === 'complete') await addCompletion(program)
    else
      program.command('completion').description('print the completion script of a shell: bash, zsh, fish, powershell')
    await program.parseAsync([...args], { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    return await report(error, name)
  }
}

async function addCompletion(program: import('commander').Command): Promise<void> {
  const { default: tab } = await import('@bomb.sh/tab/commander')
  tab(program, { completionCommandName: 'completion' })
}

async function contextFrom(flags: Flags, version: string): Promise<Context> {
  const { logFrom } = await import('./log.js')
  const { defaultNodeName, stopOnSignals } = await import('@kpng/client')
  const { EventCounts } = await import('./events.js')
  const warnings: string[] = []
  const resolved = flags.agentFlags
    ? await (await import('./agent/settings.js')).settingsFrom(flags, (message) => warnings.push(message))
    : undefined
  const { log, verbosity } = await logFrom(withLogging(flags, resolved))
  for (const message of warnings) log.warn(message)
  const ended = new AbortController()
  const signal = AbortSignal.any([stopOnSignals(log), ended.signal])
  const events = new EventCounts()
  events.report(log, signal)
  const nodeName = textFlag(flags, 'nodeName') ?? (resolved?.settings.hostnameOverride || defaultNodeName())
  return { log, verbosity, nodeName, signal, events, version, resolved, kube: undefined, stop: () => ended.abort() }
}

/** A flag comes before the configuration file. */
function withLogging(flags: Flags, resolved: Context['resolved']): Flags {
  if (!resolved) return flags
  const { verbosity, logFormat } = resolved.settings
  return {
    ...flags,
    v: textFlag(flags, 'v') ?? String(verbosity),
    logFormat: textFlag(flags, 'logFormat') ?? logFormat,
  }
}

async function report(error: unknown, name: string): Promise<number> {
  const { KpngError, messageOf } = await import('@kpng/api')
  const expected = error instanceof KpngError
  console.error(`${name}: ${messageOf(error)}`)
  // An error without a sentence of ours is a fault of ours: whoever reports it needs to say where it was.
  if (!expected && error instanceof Error && error.stack) console.error(error.stack)
  return expected && error.code === 'usage' ? 2 : 1
}
