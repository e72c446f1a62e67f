import type { Command } from 'commander'
import { buildProgram, CommanderError, everyCommand } from '../../cli/program.js'

/** Thrown instead of running the command that was parsed. */
class Parsed extends Error {}

function program(): Command {
  const tree = buildProgram('kpng', 'test', () => Promise.reject(new Parsed()))
  for (const command of everyCommand(tree))
    command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} })
  return tree
}

/** What the command says against these words, or undefined when it takes them. */
export async function refusal(words: readonly string[]): Promise<string | undefined> {
  try {
    await program().parseAsync([...words], { from: 'user' })
    return undefined
  } catch (error) {
    if (error instanceof Parsed) return undefined
    if (error instanceof CommanderError) return error.exitCode === 0 ? undefined : error.message
    throw error
  }
}
