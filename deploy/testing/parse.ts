import type { Command } from 'commander'
import { buildProgram, CommanderError, everyCommand } from '../../cli/program.js'

/** Flags that other work brings. Until the command knows them, lines are parsed without them, and that is said. */
export const comingFlags = ['--healthz-bind-address', '--metrics-bind-address', '--config']

/** Thrown instead of running the command that was parsed. */
class Parsed extends Error {}

function program(): Command {
  const tree = buildProgram('kpng', 'test', () => Promise.reject(new Parsed()))
  for (const command of everyCommand(tree))
    command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} })
  return tree
}

const flagOf = (word: string): string => word.split('=')[0] ?? ''

/** Which flags that are still to come a line uses. */
export function stillComing(words: readonly string[]): string[] {
  const known = new Set(everyCommand(program()).flatMap((command) => command.options.map((option) => option.long)))
  return words.map(flagOf).filter((flag) => comingFlags.includes(flag) && !known.has(flag))
}

/** What the command says against these words, or undefined when it takes them. */
export async function refusal(words: readonly string[]): Promise<string | undefined> {
  const coming = stillComing(words)
  const known = words.filter((word) => !coming.includes(flagOf(word)))
  try {
    await program().parseAsync(known, { from: 'user' })
    return undefined
  } catch (error) {
    if (error instanceof Parsed) return undefined
    if (error instanceof CommanderError) return error.exitCode === 0 ? undefined : error.message
    throw error
  }
}
