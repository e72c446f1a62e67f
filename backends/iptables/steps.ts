import type { Table } from './rule.js'

/**
 * How many lines iptables-nft is given at once. For each line it searches a list of all chains that were named so far, from its start:
 * 5,000 Services of 10 endpoints would take more than a minute. Legacy iptables replaces the whole table at each COMMIT, and is
 * given everything at once.
 */
export const linesAtOnce = { nft: 4000, legacy: Number.POSITIVE_INFINITY } as const

/** What iptables-restore is told about one table, in steps of limited size. Each step ends with COMMIT. */
export class Steps {
  readonly #maxLines: number
  readonly #steps: { readonly chains: Set<string>; readonly rules: string[] }[] = []

  constructor(maxLines: number) {
    this.#maxLines = maxLines
  }

  /** A line in the last step. */
  add(line: string): void {
    this.#stepFor(1).rules.push(line)
  }

  /** A chain with all its rules. It comes after the chains that it leads to. */
  write(chain: string, rules: readonly string[]): void {
    const step = this.#stepFor(rules.length + 1)
    step.chains.add(chain)
    for (const rule of rules) step.rules.push(`-A ${chain} ${rule}`)
  }

  /** Deletes chains that no other chains lead to. FW leads to EXT, EXT to SVC and SVL, and those to all others. */
  remove(chains: readonly string[]): void {
    const kinds = [undefined, 'SEP', 'SVL', 'SVC', 'EXT', 'FW']
    const order = (chain: string) => -kinds.indexOf(/-(FW|EXT|SVC|SVL|SEP)-[A-Z2-7]+$/.exec(chain)?.[1])
    for (const chain of [...chains].sort((a, b) => order(a) - order(b))) {
      const step = this.#stepFor(2)
      step.chains.add(chain)
      step.rules.push(`-X ${chain}`)
    }
  }

  *lines(table: Table): Iterable<string> {
    for (const { chains, rules } of this.#steps) {
      yield `*${table}`
      // From the last name to the first: then iptables-nft finds the place of each in its list at once.
      for (const chain of [...chains].sort().reverse()) yield `:${chain} - [0:0]`
      yield* rules
      yield 'COMMIT'
    }
  }

  #stepFor(lines: number) {
    const last = this.#steps.at(-1)
    if (last && last.chains.size + last.rules.length + lines <= this.#maxLines) return last
    const step = { chains: new Set<string>(), rules: [] }
    this.#steps.push(step)
    return step
  }
}
