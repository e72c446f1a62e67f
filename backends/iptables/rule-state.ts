import type { Family } from '@kpng/api'
import type { Frontend, FrontendChange, FrontendTable } from '@kpng/dataplane'
import { type ChainSettings, chainOfList, constantChains, nodePortFilter, servicesChain } from './chains.js'
import { type Place, type PlaceSettings, placeOf, samePlace, servesLoopback } from './place.js'
import { type Chains, type Table, tables } from './rule.js'
import { type PortRules, portRules, type SharedList, servicePortKey, sharedLists } from './service-port.js'

/** What differs in a table. */
export interface TableUpdate {
  /** Chains with all their rules. */
  readonly write: Chains
  /** Chains that are no longer needed. */
  readonly remove: readonly string[]
}

export type Update = Readonly<Record<Table, TableUpdate>>

export interface RuleSettings extends ChainSettings, PlaceSettings {
  /** Whether the kernel can serve a frontend. Default: all. */
  readonly serves?: (frontend: Frontend) => boolean
  /** With more endpoints than this the rules are as few and as short as possible. */
  readonly largeClusterEndpoints: number
}

/** The chains that the kernel should have for one family. A change costs what changed, and the shared chains that it changes. */
export class RuleState {
  readonly #family: Family
  readonly #settings: RuleSettings
  /** The frontends of each service port, by id. */
  readonly #frontends = new Map<string, Map<string, Frontend>>()
  /** The number of endpoints of each service port. */
  readonly #counts = new Map<string, number>()
  #endpoints = 0
  readonly #rules = new Map<string, PortRules>()
  readonly #chains: Record<Table, Map<string, readonly string[]>> = { nat: new Map(), filter: new Map() }
  #place: Place
  /** Rules that accept health checks. */
  #healthChecks: readonly string[] = []
  #withLoopback = false

  constructor(family: Family, settings: RuleSettings) {
    this.#family = family
    this.#settings = settings
    this.#place = { family, pods: [], nodePorts: [], countsLoopback: false, isLarge: false }
  }

  /** Every chain, with all its rules. */
  get chains(): Readonly<Record<Table, Chains>> {
    return this.#chains
  }

  /**
   * @param changes of any family
   * @param healthChecks rules that accept health checks
   */
  change(changes: readonly FrontendChange[], table: FrontendTable, healthChecks: readonly string[] = []): Update {
    this.#healthChecks = healthChecks
    const touched = new Set<string>()
    for (const { before, after } of changes) {
      if (before?.family === this.#family) touched.add(this.#remove(before))
      if (after?.family === this.#family) touched.add(this.#add(after))
    }
    for (const key of touched) this.#count(key)
    const place = this.#placeIn(table)
    return samePlace(place, this.#place) ? this.#changePorts(touched) : this.#writeAll(place, table)
  }

  /** Starts over with everything in the table. */
  rebuild(table: FrontendTable, healthChecks: readonly string[] = []): void {
    this.#healthChecks = healthChecks
    this.#frontends.clear()
    this.#counts.clear()
    this.#endpoints = 0
    for (const frontend of table.all()) if (frontend.family === this.#family) this.#add(frontend)
    for (const key of this.#frontends.keys()) this.#count(key)
    this.#writeAll(this.#placeIn(table), table)
  }

  #placeIn({ node }: FrontendTable): Place {
    return placeOf(this.#family, node, this.#settings, this.#endpoints > this.#settings.largeClusterEndpoints)
  }

  #count(key: string): void {
    let count = 0
    for (const { inside } of this.#frontends.get(key)?.values() ?? []) count = Math.max(count, inside.endpoints.length)
    this.#endpoints += count - (this.#counts.get(key) ?? 0)
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
  }

  #add(frontend: Frontend): string {
    const key = servicePortKey(frontend)
    if (this.#settings.serves?.(frontend) === false) return key
    const known = this.#frontends.get(key)
    if (known) known.set(frontend.id, frontend)
    else this.#frontends.set(key, new Map([[frontend.id, frontend]]))
    return key
  }

  #remove(frontend: Frontend): string {
    const key = servicePortKey(frontend)
    const known = this.#frontends.get(key)
    // An address that another Service took over is there under its new owner's key.
    if (known?.get(frontend.id) === frontend) known.delete(frontend.id)
    if (known?.size === 0) this.#frontends.delete(key)
    return key
  }

  #changePorts(keys: Iterable<string>): Update {
    const pending = new Pending(this.#chains)
    const lists = new Set<SharedList>()
    for (const key of keys) {
      const before = this.#rules.get(key)
      const after = this.#rulesOf(key)
      if (after) this.#rules.set(key, after)
      else this.#rules.delete(key)
      for (const chain of before?.chains.keys() ?? []) if (!after?.chains.has(chain)) pending.remove('nat', chain)
      for (const [chain, rules] of after?.chains ?? []) pending.write('nat', chain, rules)
      for (const list of sharedLists) {
        if (!sameRules(before?.shared[list] ?? [], after?.shared[list] ?? [])) lists.add(list)
      }
    }
    if (lists.size > 0) this.#writeShared(pending, lists)
    this.#writeNodePortFilter(pending)
    return pending.update
  }

  #rulesOf(key: string): PortRules | undefined {
    const frontends = this.#frontends.get(key)
    return frontends && portRules(frontends.values(), this.#settings.names, this.#place)
  }

  #writeShared(pending: Pending, lists: ReadonlySet<SharedList>): void {
    const { names } = this.#settings
    const keys = [...this.#rules.keys()].sort(inOrder)
    const all = (list: SharedList) => keys.flatMap((key) => this.#rules.get(key)?.shared[list] ?? [])
    for (const list of sharedLists.filter((each) => lists.has(each))) {
      const [table, name] = chainOfList[list]
      const rules =
        table === 'nat' && name === 'services'
          ? servicesChain(
              { services: all('services'), guards: all('guards'), whole: all('wholeAddresses') },
              this.#place,
              names,
            )
          : all(list)
      pending.write(table, names[name] as string, rules)
    }
  }

  #writeNodePortFilter(pending: Pending): void {
    const rules = nodePortFilter(this.#place, this.#withLoopback, this.#healthChecks)
    pending.write('filter', this.#settings.names.nodePorts, rules)
  }

  #writeAll(place: Place, { node }: FrontendTable): Update {
    this.#place = place
    const before = { nat: new Map(this.#chains.nat), filter: new Map(this.#chains.filter) }
    const pending = new Pending(this.#chains)
    const constant = constantChains(this.#settings, place)
    this.#withLoopback = servesLoopback(node, this.#settings.localhostNodePorts)
    for (const table of tables) {
      this.#chains[table].clear()
      for (const [chain, rules] of constant[table]) this.#chains[table].set(chain, rules)
    }
    this.#rules.clear()
    for (const key of this.#frontends.keys()) {
      const rules = this.#rulesOf(key)
      if (!rules) continue
      this.#rules.set(key, rules)
      for (const [chain, each] of rules.chains) this.#chains.nat.set(chain, each)
    }
    this.#writeShared(pending, new Set(sharedLists))
    this.#writeNodePortFilter(pending)
    return { nat: difference(before.nat, this.#chains.nat), filter: difference(before.filter, this.#chains.filter) }
  }
}

/** Collects what differs, and keeps the chains up to date with it. */
class Pending {
  readonly #chains: Readonly<Record<Table, Map<string, readonly string[]>>>
  readonly #write: Record<Table, Map<string, readonly string[]>> = { nat: new Map(), filter: new Map() }
  readonly #remove: Record<Table, string[]> = { nat: [], filter: [] }

  constructor(chains: Readonly<Record<Table, Map<string, readonly string[]>>>) {
    this.#chains = chains
  }

  write(table: Table, chain: string, rules: readonly string[]): void {
    const known = this.#chains[table].get(chain)
    if (known && sameRules(known, rules)) return
    this.#chains[table].set(chain, rules)
    this.#write[table].set(chain, rules)
  }

  remove(table: Table, chain: string): void {
    this.#chains[table].delete(chain)
    this.#remove[table].push(chain)
  }

  get update(): Update {
    const of = (table: Table): TableUpdate => ({ write: this.#write[table], remove: this.#remove[table] })
    return { nat: of('nat'), filter: of('filter') }
  }
}

function difference(before: Chains, after: Chains): TableUpdate {
  const write = new Map<string, readonly string[]>()
  for (const [chain, rules] of after) {
    const known = before.get(chain)
    if (!known || !sameRules(known, rules)) write.set(chain, rules)
  }
  return { write, remove: [...before.keys()].filter((chain) => !after.has(chain)) }
}

const sameRules = (a: readonly string[], b: readonly string[]): boolean =>
  a === b || (a.length === b.length && a.every((rule, index) => rule === b[index]))

/** By name, so that the same Services give the same rules; those with whole addresses last, since a port comes before the address. */
const inOrder = (a: string, b: string): number =>
  Number(a.endsWith(' any')) - Number(b.endsWith(' any')) || (a < b ? -1 : 1)
