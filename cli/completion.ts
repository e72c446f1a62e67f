import type { Command, Option } from 'commander'
import { flagsOf } from './help.js'

// What may stand next on a command line. The scripts of the shells ask with `kpng __complete <words>`.

/** The word with which the scripts ask. It is not a command, so that help and completion do not show it. */
export const completionWord = '__complete'

/** The answer if the shell should offer files. */
export const filesAnswer = ':files'

/**
 * The candidates for the last of the words, which may be empty, as `candidate<TAB>description` lines.
 * @param words everything after the program's name
 */
export function candidates(program: Command, words: readonly string[]): string[] {
  let command = program
  let pending: Option | undefined
  for (const word of words.slice(0, -1)) {
    if (pending) pending = undefined
    else if (word.startsWith('-')) pending = takesNextWord(command, word)
    else command = command.commands.find((sub) => sub.name() === word) ?? command
  }
  const current = words.at(-1) ?? ''
  if (pending) return valuesOf(pending, current)
  const [flag, value] = current.split('=', 2)
  if (flag?.startsWith('-') && value !== undefined) {
    const option = optionNamed(command, flag)
    return option ? valuesOf(option, value).map((line) => (line === filesAnswer ? line : `${flag}=${line}`)) : []
  }
  const lines = current.startsWith('-')
    ? [...flagsOf(command).map(({ long, description }) => `${long}\t${description}`), '--help\tprint help']
    : (command.createHelp().visibleCommands(command) as Command[]).map((sub) => `${sub.name()}\t${sub.description()}`)
  return lines.filter((line) => line.startsWith(current))
}

const optionNamed = (command: Command, name: string): Option | undefined =>
  flagsOf(command).find(({ short, long }) => name === long || name === short)

/** The flag whose value is the next word; undefined if the word has it already or the flag needs none. */
function takesNextWord(command: Command, word: string): Option | undefined {
  const option = optionNamed(command, word)
  return option?.required ? option : undefined
}

function valuesOf({ argChoices, flags, optional }: Option, current: string): string[] {
  const values = argChoices ?? (optional ? ['true', 'false'] : [])
  if (values.length > 0) return values.filter((value) => value.startsWith(current))
  return /<(?:file|path|folder)>/.test(flags) ? [filesAnswer] : []
}
