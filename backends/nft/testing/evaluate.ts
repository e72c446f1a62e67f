import { type Cidr, parseCidr } from '@kpng/api'
import type { Protocol } from '@kpng/client'
import {
  addressBytes,
  addressText,
  type Chain,
  type Elements,
  portBytes,
  portOf,
  protocolBytes,
  rangeOf,
  type SetPath,
  setPath,
  shapeAt,
  slotBytes,
  type TableFamily,
} from '@kpng/linux/nftables'
import { type Settings, settingsOf } from '../options.js'
import { chainsOf, nftRuleset } from '../rules/skeleton.js'

// Walks a packet through the rendered rules and elements, as the kernel would, without a kernel. Knows the few expressions that
// the skeleton is made of, and throws on any other.

export interface Packet {
  readonly source: string
  readonly destination: string
  readonly port: number
  readonly protocol?: Protocol
  /** It is from a process on the node. */
  readonly fromNode?: boolean
  readonly interface?: string
}

export interface Outcome {
  readonly verdict: 'endpoint' | 'passed' | 'rejected' | 'dropped'
  /** `address:port` → how likely it is. */
  readonly endpoints: ReadonlyMap<string, number>
  readonly masqueraded: boolean
}

/** Addresses of the node, for `fib … type local`. */
export interface Host {
  readonly addresses: readonly string[]
}

interface Walk {
  readonly family: TableFamily
  readonly chains: ReadonlyMap<string, Chain>
  readonly elements: Elements
  readonly local: ReadonlySet<string>
  readonly fields: Map<string, string>
  readonly interfaceName: string
  marked: boolean
  /** How likely it is that no draw has hit yet. */
  undecided: number
  readonly drawn: Map<string, number>
  redirected: boolean
}

type Verdict = 'accept' | 'drop' | 'reject' | undefined

export function evaluate(packet: Packet, elements: Elements, settings: Settings, host: Host): Outcome {
  const family: TableFamily = packet.destination.includes(':') ? 'ip6' : 'ip'
  const bytes = addressBytes
  const walk: Walk = {
    family,
    chains: new Map(chainsOf(family, settings).map((chain) => [chain.name, chain])),
    elements,
    local: new Set(host.addresses.map(bytes)),
    fields: new Map([
      [`${family} saddr`, bytes(packet.source)],
      [`${family} daddr`, bytes(packet.destination)],
      ['meta l4proto', protocolBytes(packet.protocol ?? 'tcp')],
      ['th dport', portBytes(packet.port)],
    ]),
    interfaceName: packet.interface ?? '',
    marked: false,
    undecided: 1,
    drawn: new Map(),
    redirected: false,
  }
  const hook = packet.fromNode ? 'output' : 'prerouting'
  // A translation ends the nat chains of a hook, and so does a verdict.
  const early = run(walk, `dnat-${hook}`)
  const verdict = early === undefined && !walk.redirected ? run(walk, `late-${hook}`) : early
  if (walk.redirected) return toEndpoint(walk)
  const outcome = verdict === 'drop' ? 'dropped' : verdict === 'reject' ? 'rejected' : 'passed'
  return { verdict: outcome, endpoints: new Map(), masqueraded: false }
}

function toEndpoint(walk: Walk): Outcome {
  const endpoints = new Map([...walk.drawn].map(([data, likely]) => [endpointText(data), likely]))
  const source = walk.fields.get(`${walk.family} saddr`) ?? ''
  const hairpin = [...walk.drawn.keys()].filter((data) => contains(walk, 'hairpin', source + data.slice(0, -4)))
  // Only a packet to the endpoint that it came from is masqueraded as a hairpin; with one endpoint that is all of them.
  return { verdict: 'endpoint', endpoints, masqueraded: walk.marked || hairpin.length === walk.drawn.size }
}

/** An endpoint of a whole address has no port. */
const endpointText = (data: string): string =>
  data.length === 4 || data.length === 16
    ? addressText(data)
    : `${addressText(data.slice(0, -4))}:${portOf(data.slice(-4))}`

function run(walk: Walk, name: string): Verdict {
  const chain = walk.chains.get(name)
  if (!chain) throw new Error(`A rule goes to the chain "${name}", which does not exist.`)
  for (const rule of chain.rules) {
    const done = runRule(walk, rule.text)
    if (done !== 'next') return done.verdict
  }
  return undefined
}

/** Runs one rule: the rest of it is what follows the parts that matched. */
function runRule(walk: Walk, rule: string): 'next' | { verdict: Verdict } {
  let rest = rule
  while (rest !== '') {
    const statement = statements.find(([pattern]) => pattern.test(rest))
    if (!statement) throw new Error(`The evaluator does not know "${rest}".`)
    const [pattern, apply] = statement
    const match = pattern.exec(rest) as RegExpExecArray
    const result = apply(walk, match)
    if (result === false) return 'next'
    if (typeof result === 'object') return result
    rest = rest.slice(match[0].length).trimStart()
  }
  return 'next'
}

const field = '(?:ip6? [sd]addr(?: & [0-9a-f.:]+)?|meta l4proto|th dport)'
const expression = `(${field}(?: \\. ${field})*)`

const key = (walk: Walk, text: string): string =>
  text
    .split(' . ')
    .map((field) => fieldOf(walk, field))
    .join('')

function fieldOf(walk: Walk, text: string): string {
  const [name = '', mask] = text.split(' & ')
  const value = walk.fields.get(name) ?? ''
  const bits = mask === undefined ? undefined : addressBytes(mask)
  if (bits === undefined) return value
  return String.fromCharCode(...[...value].map((byte, index) => byte.charCodeAt(0) & bits.charCodeAt(index)))
}

/** True: matched, go on. False: the rule ends. A verdict ends more than the rule. */
type Apply = (walk: Walk, match: RegExpExecArray) => boolean | { verdict: Verdict }

const statements: readonly (readonly [RegExp, Apply])[] = [
  [/^ct status dnat/, (walk) => walk.redirected],
  [/^drop/, () => ({ verdict: 'drop' })],
  [/^return/, () => ({ verdict: undefined })],
  [/^reject( with tcp reset)?/, () => ({ verdict: 'reject' })],
  [
    /^meta mark set meta mark \| 0x[0-9a-f]+/,
    (walk) => {
      walk.marked = true
      return true
    },
  ],
  [
    /^fib ([sd])addr type local/,
    (walk, [, which]) => walk.local.has(walk.fields.get(`${walk.family} ${which}addr`) ?? ''),
  ],
  [
    /^iifname (!= )?"([^"*]+)(\*?)"/,
    (walk, [, not, name = '', star]) => {
      const matches = star ? walk.interfaceName.startsWith(name) : walk.interfaceName === name
      return matches !== Boolean(not)
    },
  ],
  [
    /^(ip6? daddr) != ([0-9a-f.:/]+)/,
    (walk, [, field = '', text = '']) => {
      const { first, last } = rangeOf(parseCidr(text.includes('/') ? text : `${text}/128`) as Cidr)
      const address = walk.fields.get(field) ?? ''
      return !(first <= address && address <= last)
    },
  ],
  [
    /^meta l4proto (tcp|udp|sctp)/,
    (walk, [, name]) => walk.fields.get('meta l4proto') === protocolBytes(name as Protocol),
  ],
  [
    new RegExp(`^${expression} (!= )?@([a-z0-9-]+)`),
    (walk, [, fields = '', not, set = '']) => contains(walk, set, key(walk, fields)) !== Boolean(not),
  ],
  [
    new RegExp(`^dnat ip6? to ${expression} map @affinity`),
    (walk, [, fields = '']) => {
      const data = elementsOf(walk, 'affinity')?.get(key(walk, fields))
      return data === undefined ? false : draw(walk, [data], 1)
    },
  ],
  [
    new RegExp(`^dnat ip6? to ${expression} \\. numgen random mod (\\d+) map @([a-z-]+)`),
    (walk, [, fields = '', mod, map = '']) => {
      const list = elementsOf(walk, map)
      const prefix = key(walk, fields)
      const hits: string[] = []
      for (let slot = 0; slot < Number(mod); slot++) {
        const data = list?.get(prefix + slotBytes(slot))
        if (data !== undefined) hits.push(data)
      }
      return draw(walk, hits, Number(mod))
    },
  ],
  [
    /^(goto|jump) ([a-z0-9-]+)/,
    (walk, [, how, name = '']) => {
      const verdict = run(walk, name)
      return verdict !== undefined || how === 'goto' ? { verdict } : true
    },
  ],
]

/** Each of the hits gets its share of what is undecided; the rest goes on to the next rule. */
function draw(walk: Walk, hits: readonly string[], of: number): boolean | { verdict: Verdict } {
  for (const data of hits) walk.drawn.set(data, (walk.drawn.get(data) ?? 0) + walk.undecided / of)
  walk.undecided *= 1 - hits.length / of
  if (hits.length > 0) walk.redirected = true
  return walk.undecided < 1e-12 ? { verdict: 'accept' } : false
}

const everySet = nftRuleset(settingsOf({ counters: true }))

const elementsOf = (walk: Walk, name: string) => walk.elements.get(setPath(walk.family, name) as SetPath)

function contains(walk: Walk, name: string, wanted: string): boolean {
  const elements = elementsOf(walk, name)
  if (!elements) return false
  if (!shapeAt(everySet, setPath(walk.family, name)).interval) return elements.has(wanted)
  return [...elements.keys()].some((range) => {
    const half = range.length / 2
    // All fields but the last are the same at both ends of our ranges, so comparing whole keys is enough.
    return range.slice(0, half) <= wanted && wanted <= range.slice(half)
  })
}
