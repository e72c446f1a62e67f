import type { localv1 } from '@kpng/api'
import { type EndpointRecord, isBetter, none } from '../store/index.js'
import { hashKey } from '../store/records.js'
import { finish, type Work } from './turns.js'

// What can be said of a service's endpoints before anybody asks for a node: which ports they serve, which of them are duplicates, and their
// keys.

/** A flag per port of a service. */
export type PortFlags = readonly boolean[]

/** One endpoint, and what of it is the same to every node. */
export interface Candidate {
  readonly endpoint: EndpointRecord
  /** Per port of the service: whether it serves it. */
  readonly served: PortFlags
  /** The same, without the ports that it serves under an address and number for which another one counts. */
  counted: PortFlags
  /** Why no node uses it: it serves none of the service's ports, or the same address is in another slice and that one counts. */
  reason: 'no-port' | 'duplicate' | undefined
  /** Its name among the endpoints of the service, the same to all nodes; empty if no node uses it. A matter of what exists now, not of what was before. */
  key: string
}

/**
 * Services of more endpoints are worked out from their last revision: then a change costs what changed, and not what exists. Also how many
 * endpoints are looked at before others may come in between.
 */
const many = 256

/** The endpoints of a service, in their order. */
export class Candidates {
  readonly list: readonly Candidate[]
  readonly #service: localv1.Service
  /** Whether there are duplicates, or endpoints that could not have the key that they would have alone. They depend on each other. */
  readonly hasConflicts: boolean
  #byAddress: SharedIndex<Candidate> | undefined
  #byKey: SharedIndex<Candidate> | undefined
  #byNode: SharedIndex<Candidate> | undefined

  constructor(service: localv1.Service, list: readonly Candidate[], hasConflicts: boolean) {
    this.#service = service
    this.list = list
    this.hasConflicts = hasConflicts
  }

  /** @param similar those of another revision: what did not change since is taken over from it */
  static *make(service: localv1.Service, endpoints: readonly EndpointRecord[], similar?: Candidates): Work<Candidates> {
    const changed = similar === undefined ? undefined : yield* similar.#withEndpoints(service, endpoints)
    if (changed) return changed
    const list = yield* newCandidates(service, endpoints)
    const hasDuplicates = yield* setDuplicatesAside(service, list)
    const hasLongerKeys = yield* giveKeys(list)
    const all = new Candidates(service, list, hasDuplicates || hasLongerKeys)
    if (list.length > many) yield* all.#makeIndexes()
    return all
  }

  /** The candidate of this key. */
  withKey(key: string): Candidate | undefined {
    this.#byKey ??= finish(SharedIndex.make(this.list, keysOf))
    return this.#byKey.get(key)[0]
  }

  /** The candidates that are on a node, or meant for it. */
  ofNode(node: string): readonly Candidate[] {
    if (node === '') return none
    this.#byNode ??= finish(SharedIndex.make(this.list, nodesOf))
    return this.#byNode.get(node)
  }

  /** The nodes of the endpoints that only one of both has: they are there, or meant for them. */
  nodesOfDifference(other: Candidates): ReadonlySet<string> {
    const [start, end] = sameEnds(this.list, other.list.length, (index) => other.list[index]?.endpoint)
    const middle = (list: readonly Candidate[]) => list.slice(start, list.length - end).map(({ endpoint }) => endpoint)
    const gone = new Set(middle(this.list))
    const differing = middle(other.list).filter((endpoint) => !gone.delete(endpoint))
    return new Set([...gone, ...differing].flatMap(({ node, hints }) => [node, ...(hints?.nodes ?? none)]))
  }

  /** The same service with other endpoints; undefined where all of them have to be looked at. */
  *#withEndpoints(service: localv1.Service, endpoints: readonly EndpointRecord[]): Work<Candidates | undefined> {
    if (this.hasConflicts || this.#service !== service || endpoints.length <= many) return undefined
    const { list } = this
    const [start, end] = sameEnds(list, endpoints.length, (index) => endpoints[index])
    if (isMostOf(endpoints.length, list.length, start + end)) return undefined
    const gone = new Map(list.slice(start, list.length - end).map((known) => [known.endpoint, known]))
    const changed = endpoints.slice(start, endpoints.length - end)
    const isNew = (endpoint: EndpointRecord) => !gone.has(endpoint)
    const added = yield* newCandidates(service, changed.filter(isNew))
    let next = 0
    const middle = changed.map((endpoint) => {
      const known = gone.get(endpoint)
      gone.delete(endpoint)
      return known ?? (added[next++] as Candidate)
    })
    const after = new Candidates(service, list.slice(0, start).concat(middle, list.slice(list.length - end)), false)
    if (this.#byKey?.suits(endpoints.length)) {
      after.#byAddress = this.#byAddress?.with([...gone.values()], added)
      after.#byKey = this.#byKey.with([...gone.values()], added)
      after.#byNode = this.#byNode?.with([...gone.values()], added)
    } else yield* after.#makeIndexes()
    return added.some((candidate) => after.#conflicts(candidate)) ? undefined : after
  }

  *#makeIndexes(): Work<void> {
    this.#byAddress = yield* SharedIndex.make(this.list, addressesOf)
    this.#byKey = yield* SharedIndex.make(this.list, keysOf)
    this.#byNode = yield* SharedIndex.make(this.list, nodesOf)
  }

  #conflicts(candidate: Candidate): boolean {
    const alike = [...addressesOf(candidate).map((key) => this.#byAddress?.get(key)), this.#byKey?.get(candidate.key)]
    return alike.some((found) => found && found.length > 1)
  }
}

function* newCandidates(service: localv1.Service, endpoints: readonly EndpointRecord[]): Work<Candidate[]> {
  const servedBySlice = new Map<EndpointRecord['ports'], PortFlags>()
  const list: Candidate[] = []
  for (const endpoint of endpoints) {
    let served = servedBySlice.get(endpoint.ports)
    if (served === undefined) {
      served = servedPorts(service, endpoint.ports)
      servedBySlice.set(endpoint.ports, served)
    }
    const reason = served.includes(true) ? undefined : 'no-port'
    list.push({ endpoint, served, counted: served, reason, key: reason ? '' : keyOf(endpoint) })
    if (list.length % many === 0) yield
  }
  return list
}

/** Whether what is left of two lists, apart from what is the same at their ends, is more than half of one of them. */
const isMostOf = (after: number, before: number, same: number): boolean => after + before - 2 * same > after / 2

/** How many candidates are at the start of a list, and how many at its end, that other endpoints have there too. */
function sameEnds(
  list: readonly Candidate[],
  length: number,
  endpointAt: (index: number) => EndpointRecord | undefined,
): readonly [number, number] {
  const shorter = Math.min(list.length, length)
  let start = 0
  while (start < shorter && list[start]?.endpoint === endpointAt(start)) start++
  let end = 0
  while (end < shorter - start && list[list.length - 1 - end]?.endpoint === endpointAt(length - 1 - end)) end++
  return [start, end]
}

/** Returns whether there is one that could not have the key that it would have alone. */
function* giveKeys(list: readonly Candidate[]): Work<boolean> {
  const taken = new Set<string>()
  let hasLongerKeys = false
  for (const candidate of list) {
    if (taken.size % many === 0) yield
    const { endpoint, reason, key } = candidate
    if (reason) {
      candidate.key = ''
      continue
    }
    for (let count = 2; taken.has(candidate.key); count++) {
      hasLongerKeys = true
      candidate.key = `${key}:${hashKey(identityOf(endpoint))}${count === 2 ? '' : `:${count}`}`
    }
    taken.add(candidate.key)
  }
  return hasLongerKeys
}

/** Finds endpoints that are asked for in about the order of the list: the next one, or one went. Returns -1 for others. */
export function inOrder(list: readonly { readonly endpoint: EndpointRecord }[]): (endpoint: EndpointRecord) => number {
  let at = 0
  return (endpoint) => {
    const found = list[at]?.endpoint === endpoint ? at : at + 1
    if (list[found]?.endpoint !== endpoint) return -1
    at = found + 1
    return found
  }
}

/**
 * A pod's endpoint is named after it. A pod with two address families has two endpoints: the IPv6 one says so, whether there
 * is an IPv4 one or not, so that a key never depends on what else exists. Endpoints without a pod are named by a hash.
 */
function keyOf(endpoint: EndpointRecord): string {
  const { podName, v4, v6 } = endpoint
  if (podName === '') return hashKey(identityOf(endpoint))
  return v4.length === 0 && v6.length > 0 ? `${podName}:v6` : podName
}

/** What makes an endpoint without a name the same one after its conditions changed. */
const identityOf = ({ hostname, v4, v6, ports }: EndpointRecord): string =>
  [hostname, v4.join(), v6.join(), ...(ports ?? none).map(({ name, port }) => `${name}:${port}`)].join('|')

/**
 * The port number under which an endpoint serves a port of its service, or undefined when it does not serve it. A slice's own
 * number counts, since it may differ from slice to slice (target ports by name), and what a slice does not list is not served.
 * As in kube-proxy, a port of the same name and another protocol is another port.
 */
function targetPortOf(port: localv1.PortMapping, ports: EndpointRecord['ports']): number | undefined {
  if (ports !== undefined) {
    return ports.find(({ name, protocol = port.protocol }) => name === port.name && protocol === port.protocol)?.port
  }
  return port.targetPort > 0 ? port.targetPort : undefined
}

/** The numbers under which an endpoint serves the ports of its service. */
export const portNumbersOf = (service: localv1.Service, ports: EndpointRecord['ports']): number[] => [
  ...new Set(service.ports.flatMap((port) => targetPortOf(port, ports) ?? [])),
]

/** Which of a service's ports an endpoint serves. A service without ports has one, which everybody serves. */
function servedPorts(service: localv1.Service, ports: EndpointRecord['ports']): PortFlags {
  if (service.ports.length === 0) return [true]
  return service.ports.map((port) => targetPortOf(port, ports) !== undefined)
}

/**
 * One address in two slices (an endpoint on its way from one to the other, or an address that a new pod got already): for each
 * port that both serve under the same number, the more useful one counts. Returns whether there are any.
 */
function* setDuplicatesAside(service: localv1.Service, candidates: readonly Candidate[]): Work<boolean> {
  const duplicates = yield* withSameAddresses(candidates)
  for (const alike of duplicates) {
    for (let port = 0; port < (alike[0] as Candidate).served.length; port++) {
      const counting = new Map<number | undefined, Candidate>()
      for (const candidate of alike) {
        if (!candidate.served[port]) continue
        const mapping = service.ports[port]
        const number = mapping && targetPortOf(mapping, candidate.endpoint.ports)
        const known = counting.get(number)
        const counts = !known || isBetter(candidate.endpoint.conditions, known.endpoint.conditions)
        if (counts) counting.set(number, candidate)
        const aside = counts ? known : candidate
        if (aside) aside.counted = aside.counted.with(port, false)
      }
    }
    for (const candidate of alike) if (!candidate.counted.includes(true)) candidate.reason ??= 'duplicate'
  }
  return duplicates.length > 0
}

/** The candidates that are not the only ones of their addresses, which is rare. */
function* withSameAddresses(candidates: readonly Candidate[]): Work<readonly (readonly Candidate[])[]> {
  const first = new Map<string, Candidate>()
  const repeated = new Map<string, Candidate[]>()
  for (const candidate of candidates) {
    if (first.size % many === 0) yield
    const addresses = addressesIn(candidate.endpoint)
    const known = first.get(addresses)
    if (!known) first.set(addresses, candidate)
    else {
      const alike = repeated.get(addresses) ?? [known]
      alike.push(candidate)
      repeated.set(addresses, alike)
    }
  }
  return [...repeated.values()]
}

/** One text for all addresses of an endpoint. Nearly all have one. */
const addressesIn = ({ v4, v6 }: EndpointRecord): string =>
  v4.length + v6.length === 1 ? ((v4[0] ?? v6[0]) as string) : `${v4.join()}|${v6.join()}`

/** The keys of the indexes. An endpoint that serves no port is nobody's duplicate and has no key. */
const addressesOf = ({ endpoint, reason }: Candidate) => (reason === 'no-port' ? none : [addressesIn(endpoint)])
const keysOf = ({ key }: Candidate) => (key === '' ? none : [key])
const nodesOf = ({ endpoint: { node, hints } }: Candidate) =>
  hints?.nodes.some((name) => name !== node) ? [...new Set([node, ...hints.nodes])] : [node]

/** How many items there are per bucket, if their keys differ. */
const perBucket = 8

/** Finds items by a key. It never changes: a changed copy shares with it all buckets that are the same. */
class SharedIndex<Item> {
  readonly #keysOf: (item: Item) => readonly string[]
  readonly #buckets: readonly (readonly Item[])[]

  constructor(keysOf: (item: Item) => readonly string[], buckets: readonly (readonly Item[])[]) {
    this.#keysOf = keysOf
    this.#buckets = buckets
  }

  static *make<Item>(items: readonly Item[], keysOf: (item: Item) => readonly string[]): Work<SharedIndex<Item>> {
    const buckets: Item[][] = Array.from({ length: Math.ceil(items.length / perBucket) || 1 }, () => [])
    let done = 0
    for (const item of items) {
      for (const place of bucketsOf(keysOf(item), buckets.length)) buckets[place]?.push(item)
      if (++done % many === 0) yield
    }
    return new SharedIndex(keysOf, buckets)
  }

  /** Whether it is large enough. */
  suits(items: number): boolean {
    return items <= this.#buckets.length * perBucket * 4
  }

  get(key: string): readonly Item[] {
    const bucket = this.#buckets[bucketOf(key, this.#buckets.length)] ?? []
    return bucket.filter((item) => this.#keysOf(item).includes(key))
  }

  with(removed: readonly Item[], added: readonly Item[]): SharedIndex<Item> {
    const buckets = this.#buckets.slice()
    const replace = (item: Item, replaced: (bucket: readonly Item[]) => readonly Item[]) => {
      for (const place of bucketsOf(this.#keysOf(item), buckets.length)) {
        buckets[place] = replaced(buckets[place] ?? [])
      }
    }
    for (const item of removed) replace(item, (bucket) => bucket.filter((known) => known !== item))
    for (const item of added) replace(item, (bucket) => [...bucket, item])
    return new SharedIndex(this.#keysOf, buckets)
  }
}

/** Each place once: two keys of one item may have the same. */
function bucketsOf(keys: readonly string[], places: number): Iterable<number> {
  const found = keys.map((key) => bucketOf(key, places))
  return found.length > 1 ? new Set(found) : found
}

/** FNV-1a, within a number of places. */
function bucketOf(key: string, places: number): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  return (hash >>> 0) % places
}
