import { printableLines, schemaVersion } from '@kpng/api'
import { InvalidArgumentError, Option } from 'commander'
import type { Flags } from './context.js'
import { jsonPath } from './json-path.js'

// How answers are printed: one parser of `-o`, one printer.

type Format = 'text' | 'wide' | 'name' | 'json' | 'yaml'

/** `-o FORMAT`, as kubectl takes it: also `-o=json` and `-o jsonpath='{.…}'`. The first format is the default. */
export function outputOption(...formats: readonly Format[]): Option {
  const option = new Option('-o, --output <format>', `${formats.join(', ')} or jsonpath=TEMPLATE`).default(
    undefined,
    formats[0],
  )
  option.argChoices = [...formats, 'jsonpath=']
  return option.argParser((given) => {
    const format = given.replace(/^=/, '')
    if (format.startsWith('jsonpath=')) jsonPath(format.slice('jsonpath='.length))
    else if (!(formats as readonly string[]).includes(format))
      throw new InvalidArgumentError(`Write ${formats.join(', ')} or jsonpath=TEMPLATE.`)
    return format
  })
}

/** What an answer is in each format. */
export interface Printed {
  /** For programs: an object, which gets a schema version. */
  readonly value: object
  /** For people. */
  readonly text: (isWide: boolean) => string
  /** With `-o name`: such as `service/web`. */
  readonly names?: () => readonly string[]
}

/** Prints an answer as `-o` asks. */
export async function printAnswer(flags: Flags, { value, text, names }: Printed): Promise<void> {
  const output = String(flags.output ?? 'text')
  const versioned = { schemaVersion, ...value }
  if (output === 'json') print(`${JSON.stringify(versioned, undefined, 2)}\n`)
  else if (output === 'yaml') print((await import('js-yaml')).dump(versioned, { noRefs: true }))
  else if (output === 'name') for (const name of names?.() ?? []) print(`${name}\n`)
  else if (output.startsWith('jsonpath=')) print(jsonPath(output.slice('jsonpath='.length))(versioned))
  else print(text(output === 'wide'))
}

/** Names in an answer may be from anybody, and a terminal must show them, not obey them. */
const print = (text: string): void => void process.stdout.write(printableLines(text))
