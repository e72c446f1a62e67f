import type { Command, Option } from 'commander'
import { lists } from './get.js'
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
  let given: string[] = []
  for (const word of words.slice(0, -1)) {
    if (pending) pending = undefined
    else if (word.startsWith('-')) pending = takesNextWord(command, word)
    else {
      const next = command.commands.find((sub) => sub.name() === word)
      given = next ? [] : [...given, word]
      command = next ?? command
    }
  }
  const current = words.at(-1) ?? ''
  if (pending) return valuesOf(pending, current)
  const [flag, value] = current.split('=', 2)
  if (flag?.startsWith('-') && value !== undefined) {
    const option = optionNamed(command, flag)
    return option ? valuesOf(option, value).map((line) => (line === filesAnswer ? line : `${flag}=${line}`)) : []
  }
  if (!current.startsWith('-') && command.commands.length === 0) return argumentsOf(program, command, given, current)
  const lines = current.startsWith('-')
    ? [...flagsOf(command).map(({ long, description }) => `${long}\t${description}`), '--help\tprint help']
    : (command.createHelp().visibleCommands(command) as Command[]).map((sub) => `${sub.name()}\t${sub.description()}`)
  return lines.filter((line) => line.startsWith(current))
}

/** An answer that only a running kpng has: the names of what is in this list. */
export const namesAnswer = ':names-of-'

/** What may stand in the place of an argument. */
function argumentsOf(program: Command, command: Command, given: readonly string[], current: string): string[] {
  const matching = (words: readonly string[]) => words.filter((word) => word.startsWith(current))
  if (command.name() === 'help') {
    const found = given.reduce<Command | undefined>(
      (at, word) => at?.commands.find((sub) => sub.name() === word),
      program,
    )
    return matching((found?.commands ?? []).map((sub) => sub.name()))
  }
  if (command.name() === 'explain' && given.length === 0) return [`${namesAnswer}services`]
  if (command.name() === 'get' && given.length === 0) return matching(lists)
  if (command.name() === 'get') return [`${namesAnswer}${given[0]}`]
  return matching(command.registeredArguments[given.length]?.argChoices ?? [])
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
