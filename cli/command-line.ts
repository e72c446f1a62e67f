import { completionWord } from './completion.js'
import { type Context, type Flags, textFlag } from './context.js'
import { surviveClosedPipes } from './exit.js'

/** Runs a command of the program with this name. Returns the exit code. */
export async function runCommandLine(args: readonly string[], name: string, version: string): Promise<number> {
  surviveClosedPipes()
  const { buildProgram, CommanderError } = await import('./program.js')
  const { hintFor, isQuestion } = await import('./help.js')
  const program = buildProgram(name, version, (flags) => contextFrom(flags, version), args)
  if (args[0] === completionWord) return await complete(program, args.slice(1))
  let running = program
  program.hook('preAction', (_, command) => {
    running = command
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    // A command that answered its question may still say that something is wrong.
    return Number(process.exitCode ?? 0)
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    return await report(error, name, hintFor(running), isQuestion(running))
  }
}

async function complete(program: import('commander').Command, words: readonly string[]): Promise<number> {
  const { candidates, namesAnswer } = await import('./completion.js')
  // PowerShell cannot pass an empty word, and passes two quotes.
  const typed = words.map((word) => (word === '""' ? '' : word))
  for (const line of candidates(program, typed)) {
    if (!line.startsWith(namesAnswer)) console.log(line)
    else for (const name of await namesToComplete(line.slice(namesAnswer.length), typed)) console.log(name)
  }
  return 0
}

/** Names that the running kpng knows. None if nobody answers at once: a shell waits. */
async function namesToComplete(what: string, words: readonly string[]): Promise<readonly string[]> {
  const { knownNames } = await import('./get.js')
  const after = (...flags: readonly string[]) => words[words.findIndex((word) => flags.includes(word)) + 1]
  const flags = {
    ...(words.includes('--agent-socket') ? { agentSocket: after('--agent-socket') } : {}),
    ...(words.includes('-n') || words.includes('--namespace') ? { namespace: after('-n', '--namespace') } : {}),
  }
  const current = words.at(-1) ?? ''
  const names = await knownNames(what, flags).catch(() => [])
  return names.filter((name) => name.startsWith(current)).slice(0, mostNames)
}

const mostNames = 200

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

/** The flags, with what the configuration file says about the log. */
function withLogging(flags: Flags, resolved: Context['resolved']): Flags {
  if (!resolved) return flags
  const { verbosity, logFormat } = resolved.settings
  return { ...flags, v: String(verbosity), logFormat }
}

async function report(error: unknown, name: string, hint: string, isQuestion: boolean): Promise<number> {
  const { KpngError, messageOf, printableLines } = await import('@kpng/api')
  console.error(`${name}: ${printableLines(messageOf(error))}`)
  const usage = error instanceof KpngError && error.code === 'usage'
  if (usage) console.error(hint)
  // An error of the system (a file, a port) says enough. Any other is a bug, and a report of it needs the stack.
  const expected = error instanceof KpngError || (error instanceof Error && 'syscall' in error)
  if (!expected && error instanceof Error && error.stack) console.error(error.stack)
  if (usage) return 2
  // A script that asks must not take "I could not find out" for "there is something wrong".
  return isQuestion ? 3 : 1
}
