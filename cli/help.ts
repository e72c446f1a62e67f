import { type Command, type Help, InvalidArgumentError, Option } from 'commander'

// How help is laid out: flags in groups, those of the words before included, in 80 columns.

/** The groups of flags, in the order of the help. */
export const groups = {
  source: 'Source:',
  sink: 'Sink:',
  backend: 'Backend:',
  node: 'Node:',
  pages: 'Health and metrics:',
  dashboard: 'Live page:',
  conntrack: 'Connection tracking:',
  tls: 'TLS:',
  logging: 'Logging:',
  other: 'Other:',
} as const

const order: readonly string[] = Object.values(groups)

/** Where descriptions begin. A longer flag has a line of its own. */
const descriptionColumn = 32
const widest = 100

/** `kpng kube to-api`. */
export const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()

/** Where to find help after a mistake in this command. */
export const hintFor = (command: Command): string => `Run "${pathOf(command)} --help" for help.`

const ownFlagsOnly = new WeakSet<Command>()

/** For a command that does something else than the word before it, whose flags it does not take. */
export const withoutFlagsOfParent = (command: Command): unknown => ownFlagsOnly.add(command)

/** The flags of a command and of the words before it: all of them may be given after it. */
export function flagsOf(command: Command): Option[] {
  const before = ownFlagsOnly.has(command) ? command.parent?.parent : command.parent
  const inherited = before ? flagsOf(before) : []
  const own = new Set(command.options.map(({ long }) => long))
  return [...command.options, ...inherited.filter(({ long }) => !own.has(long))].filter(
    ({ hidden, long }) => !hidden && (long !== '--version' || !command.parent),
  )
}

const groupOf = ({ helpGroupHeading }: Option): string => helpGroupHeading ?? groups.other
const bold = (text: string): string => `\u001b[1m${text}\u001b[22m`

const layout: Partial<Help> = {
  // Commander removes the styles unless the output is a terminal and NO_COLOR is not set.
  styleTitle: bold,
  commandUsage: (command) => `${pathOf(command)} ${command.usage()}`,
  visibleOptions: (command) =>
    [...flagsOf(command), new Option('-h, --help', 'print this help')].sort(
      (a, b) => order.indexOf(groupOf(a)) - order.indexOf(groupOf(b)),
    ),
  groupItems: <T extends Command | Option>(_all: T[], visible: T[], groupName: (item: T) => string) => {
    const grouped = new Map<string, T[]>()
    for (const item of visible) {
      const group = item instanceof Option ? groupOf(item) : groupName(item)
      grouped.set(group, [...(grouped.get(group) ?? []), item])
    }
    return grouped
  },
  subcommandTerm: (command) => command.name(),
  optionDescription: ({ description, defaultValue, defaultValueDescription }) => {
    const fallback = defaultValueDescription ?? defaultValue
    return fallback === undefined ? description : `${description} (default: ${fallback})`
  },
  formatItem(term, _width, description, helper) {
    const wrapped = helper.boxWrap(description, Math.min(helper.helpWidth ?? 80, widest) - descriptionColumn)
    const [first, ...rest] = wrapped.split('\n')
    const indented = (line: string | undefined) => `${' '.repeat(descriptionColumn)}${line}`
    const start = `  ${term}`
    const begin =
      helper.displayWidth(start) > descriptionColumn - 2
        ? [start, indented(first)]
        : [`${start}${' '.repeat(descriptionColumn - helper.displayWidth(start))}${first}`]
    return [...begin, ...rest.map(indented)].join('\n')
  },
}

/** Sets the layout for a program. Call it before commands are added: they inherit it. */
export const useLayout = (program: Command, name: string): Command =>
  program
    .configureHelp(layout)
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, `${name}: `)) })
    // Errors come back as exceptions, so that the exit code can be chosen.
    .exitOverride()

/** Two command lines that work, below the flags. */
export const addExamples = (command: Command, ...examples: readonly string[]): Command =>
  command.addHelpText('after', `\n${bold('Examples:')}\n${examples.map((example) => `  $ ${example}`).join('\n')}`)

const questions = new WeakSet<Command>()

/** Whether a command answers a question: its exit code tells a bad answer from none. */
export const isQuestion = (command: Command): boolean => questions.has(command)

/** What scripts see of a command that answers a question, below the examples. */
export function addExitCodes(command: Command, good: string, bad?: string): Command {
  questions.add(command)
  const lines = [
    `0  ${good}`,
    ...(bad === undefined ? [] : [`1  ${bad}`]),
    '2  the command line is wrong',
    '3  the question could not be answered',
  ]
  return command.addHelpText('after', `\n${bold('Exit code:')}\n${lines.map((line) => `  ${line}`).join('\n')}`)
}

/** A flag that is written `--flag`, `--flag=true` or `--flag=false`, as in Go programs. */
export const booleanOption = (flag: string, summary: string, fallback?: boolean): Option =>
  new Option(`${flag} [bool]`, summary).default(fallback).argParser((text) => {
    if (/^(1|t|true)$/i.test(text)) return true
    if (/^(0|f|false)$/i.test(text)) return false
    throw new InvalidArgumentError('Write true or false.')
  })
