import { hostPort, parseIp } from '@kpng/api'
import { kpngOwnerChain } from '../kube-proxy-leftovers/names.js'
import { type KubeProxyRules, keyOf, type Rule } from './rules.js'

/** A line of `iptables-save`: the words after the chain's name. */
interface Line {
  readonly table: string
  readonly chain: string
  readonly words: readonly string[]
}

/** Why `iptables-save` shows no rules that could be compared. */
export type NoRules = 'none' | 'ipvs' | 'kpng'

/** Whose rules these are. kpng's iptables backend uses the same names, and marks them as its own. */
export function ownerOf(saved: string): 'kube-proxy' | NoRules {
  if (saved.includes(`:${kpngOwnerChain} `)) return 'kpng'
  if (!/^:KUBE-SERVICES /m.test(saved)) return 'none'
  return /^-A KUBE-SERVICES .*--match-set KUBE-/m.test(saved) ? 'ipvs' : 'kube-proxy'
}

/**
 * Reads what `iptables-save` prints.
 *
 * In the table nat, KUBE-SERVICES and KUBE-NODEPORTS lead to KUBE-SVC-… (all endpoints), KUBE-SVL-… (those of this node), KUBE-EXT-… (traffic
 * from outside) or KUBE-FW-… (source ranges), and those to KUBE-SEP-…, which has the DNAT. In the table filter, KUBE-SERVICES and
 * KUBE-EXTERNAL-SERVICES refuse or drop what nobody serves.
 * @param clientsOf whom the list of an endpoint's session affinity names; such a list has the name of the endpoint's chain
 */
export function parseIptables(
  saved: string,
  clientsOf: (list: string) => readonly string[] = () => [],
): KubeProxyRules {
  const chains = new Map<string, Rule[]>()
  const entrances = new Map<string, string>()
  const otherwise = new Map<string, 'refuse' | 'drop'>()
  const remembered = new Map<string, readonly string[]>()
  for (const line of linesOf(saved)) {
    const { table, chain, words } = line
    const target = after(words, '-j') ?? after(words, '-g')
    const key = keyIn(words)
    if (table === 'filter') {
      if (key === undefined || (chain !== 'KUBE-SERVICES' && chain !== 'KUBE-EXTERNAL-SERVICES')) continue
      if (target === 'REJECT' || target === 'DROP') otherwise.set(key, target === 'DROP' ? 'drop' : 'refuse')
    } else if (table === 'nat') {
      const isEntrance = chain === 'KUBE-SERVICES' || chain === 'KUBE-NODEPORTS'
      if (isEntrance && key !== undefined && target?.startsWith('KUBE-')) entrances.set(key, target)
      const rules = chains.get(chain) ?? []
      chains.set(chain, rules)
      rules.push(ruleIn(words, target))
      if (words.includes('--set')) remembered.set(chain, clientsOf(after(words, '--name') ?? chain))
    }
  }
  return { chains, entrances, otherwise, remembered }
}

function* linesOf(saved: string): Generator<Line> {
  let table = ''
  for (const line of saved.split('\n')) {
    if (line.startsWith('*')) table = line.slice(1).trim()
    const [, chain, rest] = /^-A (KUBE-\S+) ?(.*)$/.exec(line) ?? []
    if (chain !== undefined) yield { table, chain, words: wordsOf(rest ?? '') }
  }
}

/** Words are in quotes if they have spaces. A backslash in quotes stands for the next character. */
const wordsOf = (text: string): string[] =>
  [...text.matchAll(/"((?:\\.|[^"\\])*)"|(\S+)/g)].map(([, quoted, plain]) =>
    quoted === undefined ? (plain as string) : quoted.replace(/\\(.)/g, '$1'),
  )

const after = (words: readonly string[], flag: string): string | undefined => {
  const at = words.indexOf(flag)
  return at < 0 ? undefined : words[at + 1]
}

/** The frontend that a rule is for; without an address it is a node port. */
function keyIn(words: readonly string[]): string | undefined {
  const protocol = after(words, '-p')
  const port = after(words, '--dport')
  if (protocol === undefined || port === undefined) return undefined
  const [ip, length] = (after(words, '-d') ?? '').split('/') as [string, string?]
  // Rules for 127.0.0.0/8 repeat a node port for loopback.
  const isOne = length === undefined || length === '32' || length === '128'
  return keyOf({ address: isOne ? canonical(ip) : '', protocol, port: Number(port) })
}

const conditions = new Set(['-s', '-i', '--src-type', '--physdev-in', '--mark'])

function ruleIn(words: readonly string[], target: string | undefined): Rule {
  const to = target === 'DNAT' ? after(words, '--to-destination') : undefined
  return {
    isConditional: words.some((word) => conditions.has(word)),
    chains: target?.startsWith('KUBE-') ? [target] : [],
    endpoints: to === undefined ? [] : [endpointText(to)],
  }
}

function endpointText(to: string): string {
  const [, bracketed, plain = '', port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(to) ?? []
  return port === undefined ? to : hostPort(canonical(bracketed ?? plain), Number(port))
}

const canonical = (ip: string): string => parseIp(ip)?.text ?? ip
