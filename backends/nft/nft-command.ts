import { KpngError } from '@kpng/api'
import { type ProgramResult, runProgram } from '@kpng/linux'
import type { Family } from './address.js'
import { tableName } from './names.js'
import { outlineIn } from './outline-text.js'
import type { TableOutline } from './writer.js'

/** An nft that takes longer hangs. Long input needs its time: 10 seconds per megabyte is many times what nft takes. */
const limitMsFor = (input: string): number => 30_000 + input.length / 100

/** The nft command. */
export class NftCommand {
  readonly #command: string

  constructor(command: string) {
    this.#command = command
  }

  /** Runs a text as one transaction. */
  async apply(text: string): Promise<void> {
    const { code, errors } = await this.#run(['-f', '-'], text)
    if (code === 0) return
    const reason = firstSentence(errors) || `exit code ${code}`
    throw new KpngError('refused', `nft refused a transaction: ${reason}. Nothing was changed by it.`)
  }

  /** Whether nft and the kernel would take a text. */
  async check(text: string): Promise<string | undefined> {
    const { code, errors } = await this.#run(['-c', '-f', '-'], text)
    return code === 0 && errors === '' ? undefined : firstSentence(errors) || `exit code ${code}`
  }

  async version(): Promise<string> {
    const { output } = await this.#run(['--version'])
    return /v(\d+(?:\.\d+)+)/.exec(output)?.[1] ?? 'unknown'
  }

  /** The parsed output of `nft -j list …`. */
  async list(...what: string[]): Promise<unknown> {
    const { code, output, errors } = await this.#run(['-j', 'list', ...what])
    if (code !== 0) throw cannotList(what.join(' '), errors, code)
    return JSON.parse(output)
  }

  /** Undefined when there is no such table. Whoever could not look does not know that. */
  async outline(family: Family): Promise<TableOutline | undefined> {
    const { code, output, errors } = await this.#run(['-s', '-t', 'list', 'table', family, tableName])
    if (code === 0) return outlineIn(family, output)
    if (saysNoSuchTable.test(errors)) return undefined
    throw cannotList(`table ${family} ${tableName}`, errors, code)
  }

  #run(args: readonly string[], input = ''): Promise<ProgramResult> {
    return runProgram(this.#command, args, { input, limitMs: limitMsFor(input) })
  }
}

/** At the start of what nft says: a library that nft itself lacks is "No such file or directory" too. */
const saysNoSuchTable = /(?:^|: )Error: No such file or directory/m

function cannotList(what: string, errors: string, code: number): KpngError {
  const next = /not permitted|permission denied/i.test(errors)
    ? 'Run kpng as root, or give it the capability CAP_NET_ADMIN.'
    : `Try \`nft list ${what}\` on this machine.`
  return new KpngError(
    'unavailable',
    `nft cannot list ${what}: ${firstSentence(errors) || `exit code ${code}`}. ${next}`,
  )
}

const firstSentence = (errors: string): string => {
  const line = errors.split('\n').find((text) => text.includes('Error')) ?? errors.split('\n')[0] ?? ''
  return line.replace(/^.*?Error:\s*/, '').slice(0, 300)
}
