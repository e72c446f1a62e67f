import { readFileSync } from 'node:fs'
import { type Context, type Flags, textFlag } from './context.js'
import { surviveClosedPipes } from './exit.js'

/** Exit codes: 0 done, 1 failed, 2 wrong usage. */
export async function main(args: readonly string[], name = 'kpng'): Promise<number> {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  if (args.length === 1 && args[0] === '--version') {
    console.log(version)
    return 0
  }
  surviveClosedPipes()
  const { buildProgram, CommanderError } = await import('./program.js')
  const program = buildProgram(name, version, (flags) => contextFrom(flags, version))
  try {
    if (args[0] === 'completion' || args[0] === 'complete') await addCompletion(program)
    else
      program.command('completion').description('print the completion script of a shell: bash, zsh, fish, powershell')
    await program.parseAsync(args.flatMap(klogSpelling), { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    return await report(error, name)
  }
}

/** `-v=2`, as Kubernetes' own programs have it. */
const klogSpelling = (word: string): string[] => (/^-v=\d+$/.test(word) ? ['-v', word.slice(3)] : [word])

async function addCompletion(program: import('commander').Command): Promise<void> {
  const { default: tab } = await import('@bomb.sh/tab/commander')
  tab(program, { completionCommandName: 'completion' })
}

async function contextFrom(flags: Flags, version: string): Promise<Context> {
  const { logFrom } = await import('./log.js')
  const { defaultNodeName, SourceStatus, stopOnSignals } = await import('@kpng/client')
  const { EventCounts } = await import('./events.js')
  const warnings: string[] = []
  const resolved = flags.agent
    ? await (await import('./agent/settings.js')).settingsFrom(flags, (message) => warnings.push(message))
    : undefined
  const { log, verbosity } = await logFrom(withLogging(flags, resolved))
  for (const message of warnings) log.warn(message)
  const ended = new AbortController()
  const signal = AbortSignal.any([stopOnSignals(log), ended.signal])
  const events = new EventCounts()
  events.report(log, signal)
  const nodeName = textFlag(flags, 'nodeName') ?? (resolved?.settings.hostnameOverride || defaultNodeName())
  return {
    log,
    verbosity,
    nodeName,
    signal,
    events,
    version,
    resolved,
    kube: undefined,
    source: new SourceStatus(),
    stop: (reason) => ended.abort(reason),
  }
}

/** What flags and the configuration file say together. */
function withLogging(flags: Flags, resolved: Context['resolved']): Flags {
  if (!resolved) return flags
  const { verbosity, logFormat } = resolved.settings
  return { ...flags, v: String(verbosity), logFormat }
}

async function report(error: unknown, name: string): Promise<number> {
  const { KpngError, messageOf } = await import('@kpng/api')
  const expected = error instanceof KpngError
  console.error(`${name}: ${messageOf(error)}`)
  // An error without a sentence of ours is a fault of ours: whoever reports it needs to say where it was.
  if (!expected && error instanceof Error && error.stack) console.error(error.stack)
  return expected && error.code === 'usage' ? 2 : 1
}
