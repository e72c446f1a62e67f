import { iptablesTables, isEntranceChain, isKubeProxyChain, kpngOwnerChain } from './names.js'

/** What is removed from one table of iptables, and how. */
export interface TablePlan {
  readonly table: string
  readonly chains: readonly string[]
  /** Rules of built-in chains that jump to kube-proxy's chains, as `iptables-save` writes them, without `-A`. */
  readonly jumps: readonly string[]
  /** Chains of kube-proxy that stay, because other rules jump to them. */
  readonly kept: readonly string[]
  /** Input of `iptables-restore --noflush`; empty if nothing is removed. */
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

/** Decides what to remove, from the output of `iptables-save`. Tables without anything of kube-proxy are left out. */
export function planRemoval(saved: string): TablePlan[] {
  return parse(saved)
    .filter((table) => iptablesTables.has(table.name) && !table.chains.includes(kpngOwnerChain))
    .map(planTable)
    .filter((plan) => plan.restore !== '' || plan.kept.length > 0)
}

/** Tables that only `nft` can show, according to `iptables-nft-save`: nothing can be decided about them. */
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

/** The chain that a rule jumps to. Quoted text, such as a comment, may look like a jump and is ignored. */
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
 * Chains that other rules jump to (the portmap plugin may use KUBE-MARK-MASQ), and the chains that those jump to in turn. Removing
 * them would break rules that do not belong to kube-proxy.
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

/** With `--noflush`, naming a chain empties it, so that no rule in one chain prevents the deletion of another. */
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
