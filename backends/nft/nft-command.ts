import { KpngError } from '@kpng/api'
import type { Family } from './address.js'
import { runCommand } from './command.js'
import { tableName } from './names.js'
import type { TableOutline } from './writer.js'

/** The nft command. */
export class NftCommand {
  readonly #command: string

  constructor(command: string) {
    this.#command = command
  }

  /** Runs a text as one transaction. */
  async apply(text: string): Promise<void> {
    const { code, errors } = await runCommand(this.#command, ['-f', '-'], text)
    if (code === 0) return
    const reason = firstSentence(errors) || `exit code ${code}`
    throw new KpngError('refused', `nft refused a transaction: ${reason}. Nothing was changed by it.`)
  }

  /** Whether nft and the kernel would take a text. */
  async check(text: string): Promise<string | undefined> {
    const { code, errors } = await runCommand(this.#command, ['-c', '-f', '-'], text)
    return code === 0 && errors === '' ? undefined : firstSentence(errors) || `exit code ${code}`
  }

  async version(): Promise<string> {
    const { output } = await runCommand(this.#command, ['--version'])
    return /v(\d+(?:\.\d+)+)/.exec(output)?.[1] ?? 'unknown'
  }

  /** The parsed output of `nft -j list …`. */
  async list(...what: string[]): Promise<unknown> {
    const { code, output, errors } = await runCommand(this.#command, ['-j', 'list', ...what])
    if (code !== 0) throw new KpngError('unavailable', `nft cannot list ${what.join(' ')}: ${firstSentence(errors)}.`)
    return JSON.parse(output)
  }

  /** Undefined when there is no such table. */
  async outline(family: Family): Promise<TableOutline | undefined> {
    const { code, output } = await runCommand(this.#command, ['-t', 'list', 'table', family, tableName])
    return code === 0 ? outlineIn(output) : undefined
  }
}

const firstSentence = (errors: string): string => {
  const line = errors.split('\n').find((text) => text.includes('Error')) ?? errors.split('\n')[0] ?? ''
  return line.replace(/^.*?Error:\s*/, '').slice(0, 300)
}

/** Reads what `nft -t list table` prints. */
export function outlineIn(text: string): TableOutline {
  const sets = new Set<string>()
  const chains = new Map<string, number>()
  let chain: string | undefined
  for (const line of text.split('\n')) {
    const head = /^\t(set|map|chain) (\S+) \{/.exec(line)
    if (head) {
      const [, kind, name = ''] = head
      chain = kind === 'chain' ? name : undefined
      if (chain) chains.set(chain, 0)
      else sets.add(name)
    } else if (line === '\t}') chain = undefined
    else if (chain && line.startsWith('\t\t') && !/^\t\ttype \S+ hook /.test(line)) {
      chains.set(chain, (chains.get(chain) ?? 0) + 1)
    }
  }
  return { sets, chains }
}
