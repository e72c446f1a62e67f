import { type Table, tables } from '../rule.js'
import { parseSaved, partsOf, type Saved } from '../save.js'

/** The system's chains, as iptables-save prints them on a new machine. */
export const emptyRules = `*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
COMMIT
`

/** Does to its tables what `iptables-restore --noflush` does, and fails where it fails. */
export class FakeIptables {
  readonly #tables: Record<Table, Map<string, string[]>> = { nat: new Map(), filter: new Map() }
  /** The chains that the last input declared, by table. */
  declared: Record<Table, string[]> = { nat: [], filter: [] }

  constructor() {
    const saved = parseSaved(emptyRules)
    for (const table of tables) for (const chain of saved[table].chains.keys()) this.#tables[table].set(chain, [])
  }

  /** Without counters and policies. */
  chains(table: Table): ReadonlyMap<string, readonly string[]> {
    return this.#tables[table]
  }

  get saved(): Saved {
    const builtIn = parseSaved(emptyRules)
    const of = (table: Table) => ({ builtIn: builtIn[table].builtIn, chains: this.#tables[table] })
    return { nat: of('nat'), filter: of('filter') }
  }

  restore(input: string): void {
    this.declared = { nat: [], filter: [] }
    let name: Table = 'nat'
    let table = this.#tables.nat
    for (const line of input.split('\n')) {
      const [word = '', chain = ''] = line.split(' ')
      const rule = line.slice(word.length + chain.length + 2)
      const rules = table.get(chain)
      if (line.startsWith('*')) {
        name = line.slice(1) as Table
        table = new Map(this.#tables[name])
      } else if (line.startsWith(':')) {
        table.set(word.slice(1), [])
        this.declared[name].push(word.slice(1))
      } else if (word === '-X') {
        if (rules?.length !== 0) throw new Error(`${line}: not there, or not empty`)
        table.delete(chain)
      } else if (word === '-A' || word === '-I') {
        if (!rules) throw new Error(`${line}: there is no such chain`)
        if (word === '-A') rules.push(rule)
        else rules.unshift(rule.replace(/^1 /, ''))
      } else if (word === 'COMMIT') this.#commit(name, table)
      else if (line !== '') throw new Error(`${line}: not understood`)
    }
  }

  #commit(name: Table, table: Map<string, string[]>): void {
    for (const [chain, rules] of table) {
      for (const { target } of rules.map(partsOf)) {
        if (/^(?:KUBE|KPNG)-/.test(target) && !table.has(target))
          throw new Error(`${chain} jumps to ${target}, which is gone`)
      }
    }
    this.#tables[name] = table
  }
}
