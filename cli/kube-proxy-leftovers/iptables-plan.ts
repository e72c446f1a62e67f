import { iptablesTables, isEntranceChain, isKubeProxyChain } from './names.js'

/** What goes from one table of iptables, and how. */
export interface TablePlan {
  readonly table: string
  readonly chains: readonly string[]
  /** Rules of built-in chains that lead into kube-proxy's, as `iptables-save` writes them, without `-A`. */
  readonly jumps: readonly string[]
  /** Chains of kube-proxy that stay, because somebody else's rules lead there. */
  readonly kept: readonly string[]
  /** Input of `iptables-restore --noflush`; empty when nothing goes. */
  readonly restore: string
}

interface Rule {
  readonly chain: string
  /** Everything after the chain. */
  readonly spec: string
  readonly target: string | undefined
}

interface Table {
  readonly name: string
  readonly builtIn: Set<string>
  readonly chains: string[]
  readonly rules: Rule[]
}

/** Decides what of kube-proxy's goes, from the output of `iptables-save`. Tables with nothing of kube-proxy's are left out. */
export function planRemoval(saved: string): TablePlan[] {
  return parse(saved)
    .filter((table) => iptablesTables.has(table.name))
    .map(planTable)
    .filter((plan) => plan.restore !== '' || plan.kept.length > 0)
}

/** Tables of which `iptables-nft-save` says that they hold what only `nft` can show: nothing can be decided about them. */
export const unreadableTables = (saved: string): string[] =>
  [...saved.matchAll(/^# Table `([^']+)' is incompatible/gm)].flatMap(([, table]) =>
    table !== undefined && iptablesTables.has(table) ? [table] : [],
  )

function parse(saved: string): Table[] {
  const tables: Table[] = []
  let table: Table | undefined
  for (const line of saved.split('\n')) {
    if (line.startsWith('*')) {
      table = { name: line.slice(1).trim(), builtIn: new Set(), chains: [], rules: [] }
      tables.push(table)
      continue
    }
    const [, chain, policy] = /^:(\S+) (\S+)/.exec(line) ?? []
    if (chain !== undefined) {
      table?.chains.push(chain)
      // Only built-in chains have a policy.
      if (policy !== '-') table?.builtIn.add(chain)
      continue
    }
    const [, of, spec] = /^-A (\S+) (.*)$/.exec(line) ?? []
    if (of !== undefined && spec !== undefined) table?.rules.push({ chain: of, spec, target: targetOf(spec) })
  }
  return tables
}

/** Where a rule leads. What is in quotes, such as a comment, may look like a jump and is none. */
function targetOf(spec: string): string | undefined {
  const bare = spec.replace(/"(?:\\.|[^"\\])*"/g, '""')
  return /(?:^| )-[jg] (\S+)/.exec(bare)?.[1]
}

function planTable(table: Table): TablePlan {
  const isJump = ({ chain, target }: Rule) =>
    table.builtIn.has(chain) && target !== undefined && isEntranceChain(target)
  const own = table.chains.filter((chain) => isKubeProxyChain(chain) && !table.builtIn.has(chain))
  const needed = neededByOthers(table, new Set(own), isJump)
  const chains = own.filter((chain) => !needed.has(chain))
  const jumps = table.rules.filter(isJump).map(({ chain, spec }) => `${chain} ${spec}`)
  const kept = own.filter((chain) => needed.has(chain))
  return { table: table.name, chains, jumps, kept, restore: render(table.name, chains, jumps) }
}

/**
 * Chains that rules of others lead to (the portmap plugin may use KUBE-MARK-MASQ), and the ones that those lead to in
 * turn. Removing them would mean to break, or to rewrite, somebody else's rules.
 */
function neededByOthers(table: Table, own: ReadonlySet<string>, isJump: (rule: Rule) => boolean): Set<string> {
  const needed = new Set<string>()
  const targets = new Map<string, string[]>()
  for (const rule of table.rules) {
    if (rule.target === undefined || !own.has(rule.target) || isJump(rule)) continue
    if (!own.has(rule.chain)) needed.add(rule.target)
    else targets.set(rule.chain, [...(targets.get(rule.chain) ?? []), rule.target])
  }
  // A set may grow while it is walked: what is added is walked too.
  for (const chain of needed) for (const target of targets.get(chain) ?? []) needed.add(target)
  return needed
}

/** With `--noflush`, naming a chain empties it, so that no rule of one chain holds another when they are deleted. */
function render(table: string, chains: readonly string[], jumps: readonly string[]): string {
  if (chains.length === 0 && jumps.length === 0) return ''
  return [
    `*${table}`,
    ...chains.map((chain) => `:${chain} - [0:0]`),
    ...jumps.map((jump) => `-D ${jump}`),
    ...chains.map((chain) => `-X ${chain}`),
    'COMMIT',
    '',
  ].join('\n')
}
