import { hostPort, KpngError, parseIp } from '@kpng/api'
import { type KubeProxyRules, keyOf, type Rule } from './rules.js'

/** An object of `nft -j`: one field, named by its kind. */
type Json = Readonly<Record<string, unknown>>

/**
 * Reads what `nft -j list table ip kube-proxy` prints.
 *
 * `service-ips` and `service-nodeports` lead to chains `service-…`, `local-…` or `external-…`, which have `dnat` rules, or lead to chains
 * `endpoint-…` that have them (with session affinity, and in older versions always). `no-endpoint-services` and
 * `no-endpoint-nodeports` refuse or drop what nobody serves.
 */
export function parseNftables(text: string): KubeProxyRules {
  const objects = list(object(parseJson(text)).nftables).map(object)
  const entrances = new Map<string, string>()
  const otherwise = new Map<string, 'refuse' | 'drop'>()
  for (const { name, elem } of objects.flatMap(({ map }) => (map ? [object(map)] : []))) {
    for (const [element, verdict] of list(elem).map(list)) {
      const key = keyIn(element)
      const target = targetsIn(verdict)[0]
      if (name === 'service-ips' || name === 'service-nodeports') {
        if (target !== undefined) entrances.set(key, target)
      } else if (name === 'no-endpoint-services' || name === 'no-endpoint-nodeports') {
        otherwise.set(key, 'drop' in object(verdict) ? 'drop' : 'refuse')
      }
    }
  }
  return { ...chainsIn(objects), entrances, otherwise }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new KpngError(
      'unsupported',
      'The output of nft cannot be read: it is not JSON. Is nft built with JSON support?',
      {
        cause: error,
      },
    )
  }
}

function chainsIn(objects: readonly Json[]): Pick<KubeProxyRules, 'chains' | 'remembered'> {
  const chains = new Map<string, Rule[]>()
  const remembered = new Map<string, readonly string[]>()
  const sets = new Map(
    objects.flatMap(({ set }) => (set ? [[`@${object(set).name}`, list(object(set).elem).map(clientIn)]] : [])),
  )
  for (const { chain, expr } of objects.flatMap(({ rule }) => (rule ? [object(rule)] : []))) {
    const statements = list(expr).map(object)
    const rules = chains.get(String(chain)) ?? []
    chains.set(String(chain), rules)
    rules.push({
      isConditional: statements.some((statement) => 'match' in statement),
      chains: statements.flatMap((statement) => targetsIn(statement)),
      endpoints: statements.flatMap(({ dnat }) => (dnat ? endpointsIn(object(dnat)) : [])),
    })
    // An endpoint with session affinity adds each client to the set of those that it keeps.
    for (const { set } of statements) {
      if (set) remembered.set(String(chain), sets.get(String(object(set).set)) ?? [])
    }
  }
  return { chains, remembered }
}

/** An element may have a comment or a time beside its value. */
const plainValue = (element: unknown): unknown => {
  const { elem } = object(element)
  return elem === undefined ? element : object(elem).val
}

const clientIn = (element: unknown): string => String(plainValue(element))

/** `address . protocol . port`, or for node ports `protocol . port`. */
function keyIn(element: unknown): string {
  const parts = list(object(plainValue(element)).concat)
  const [address, protocol, port] = parts.length === 2 ? ['', ...parts] : parts
  return keyOf({ address: canonical(String(address)), protocol: String(protocol), port: Number(port) })
}

/** The chains that a verdict, or a map of verdicts, leads to. */
function targetsIn(statement: unknown): string[] {
  const { goto, jump, vmap } = object(statement)
  const direct = [goto, jump].flatMap((verdict) => (verdict ? [String(object(verdict).target)] : []))
  const mapped = vmap ? list(object(object(vmap).data).set).flatMap((pair) => targetsIn(list(pair)[1])) : []
  return [...direct, ...mapped]
}

/** One endpoint, or a map from random numbers to endpoints. */
function endpointsIn({ addr, port }: Json): string[] {
  if (typeof addr === 'string') return [endpointText(addr, port)]
  const pairs = list(object(object(object(addr).map).data).set).map(list)
  return pairs.map(([, data]) => {
    const [ip, number] = list(object(data).concat)
    return endpointText(String(ip), number)
  })
}

const endpointText = (ip: string, port: unknown): string => hostPort(canonical(ip), Number(port))

const canonical = (ip: string): string => parseIp(ip)?.text ?? ip

const object = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
