import { families, type Log, silentLog } from '@kpng/api'
import type { Changes, NodeView, ServiceEndpoints } from '@kpng/client'
import { Claims } from './claims.js'
import { type Frontend, sameFrontend } from './frontend.js'
import { type Machine, type NodeFacts, nodeFacts, sameFacts, sameForFrontends, unknownNode } from './node.js'
import type { ServiceProblem } from './port-endpoints.js'
import { type ServiceFrontends, serviceFrontends } from './service-frontends.js'
import { type DataplaneOptions, type DataplaneSettings, dataplaneSettings } from './settings.js'

/** A frontend before and after; undefined where it did not or does not exist. */
export interface FrontendChange {
  /** Undefined: it did not exist. */
  readonly before: Frontend | undefined
  /** Undefined: it is gone. */
  readonly after: Frontend | undefined
}

/** What is new since the last `apply`. */
export interface FrontendChanges {
  /** The content of the data plane is unknown. Compare it with the whole table. */
  readonly full: boolean
  /** Exactly the frontends that differ, each once. */
  readonly frontends: readonly FrontendChange[]
  /** The node before, if it differs. Its addresses and ranges are in the table, not in the frontends. */
  readonly nodeBefore: NodeFacts | undefined
}

/** What one node serves: its frontends. An update costs what changed. Every backend builds on it. */
export class FrontendTable {
  readonly settings: DataplaneSettings
  readonly #log: Log
  readonly #claims = new Claims()
  /** As of the last `apply`. */
  readonly #services = new Map<string, ServedItem>()
  /** Those that were logged, by Service. */
  readonly #problems = new Map<string, readonly ServiceProblem[]>()
  #node: NodeFacts = unknownNode
  #size = 0

  constructor(options: DataplaneOptions = {}, log: Log = silentLog) {
    this.settings = dataplaneSettings(options)
    this.#log = log
  }

  /** The table of a node with this view, for a single question. */
  static of(
    view: NodeView,
    options: DataplaneOptions = {},
    machine: Machine = { families, addresses: [] },
  ): FrontendTable {
    const table = new FrontendTable(options)
    const all = { full: true, services: new Map(), node: true, serviceCidrs: true, triggers: [] }
    table.apply(view, all, machine)
    return table
  }

  /** This node, as of the last `apply`. */
  get node(): NodeFacts {
    return this.#node
  }

  /** Every frontend that is served. */
  all(): Iterable<Frontend> {
    return this.#claims.owners()
  }

  /** The number of frontends that are served. */
  get size(): number {
    return this.#size
  }

  /** The frontend with an id (see `frontendId`) that is served. */
  get(id: string): Frontend | undefined {
    return this.#claims.owner(id)
  }

  /** What a Service asks for, whether it is served or another Service owns the address. */
  wantedBy(service: string): readonly Frontend[] {
    return this.#services.get(service)?.frontends ?? none
  }

  /** The Service as of the last `apply`. */
  itemOf(service: string): ServiceEndpoints | undefined {
    return this.#services.get(service)?.item
  }

  /** Which parts of a Service are not served. */
  problemsOf(service: string): readonly ServiceProblem[] {
    const served = this.#services.get(service)
    if (!served) return none
    let problems = served.problems
    for (const frontend of served.frontends) {
      const owner = this.#claims.owner(frontend.id)
      if (owner !== frontend) problems = [...problems, { kind: 'conflict', sentence: conflictOf(frontend, owner) }]
    }
    return problems
  }

  /** The Services of which something is not served, and what. */
  get problems(): ReadonlyMap<string, readonly ServiceProblem[]> {
    return this.#problems
  }

  apply(view: NodeView, changes: Changes, machine: Machine): FrontendChanges {
    const nodeBefore = this.#node
    // A node without a Node object has the addresses of the machine, and no event says when they change.
    const mayDiffer = changes.full || changes.node || changes.serviceCidrs || !view.node || nodeBefore === unknownNode
    const node = mayDiffer ? nodeFacts(view, machine, this.settings) : nodeBefore
    this.#node = node === nodeBefore || sameFacts(nodeBefore, node) ? nodeBefore : node
    const isOtherNode = this.#node !== nodeBefore && !sameForFrontends(nodeBefore, node)
    const paths =
      changes.full || isOtherNode
        ? new Set([...this.#services.keys(), ...view.services.keys()])
        : changes.services.keys()
    const wanted = new Map<string, ServedItem | undefined>()
    for (const path of paths) {
      const item = view.services.get(path)
      // A Service is never changed in place: the same object asks for the same frontends.
      if (!isOtherNode && item === this.#services.get(path)?.item) continue
      wanted.set(path, item && this.#serve(path, item))
    }
    return {
      full: changes.full,
      frontends: this.#replace(wanted),
      nodeBefore: this.#node === nodeBefore ? undefined : nodeBefore,
    }
  }

  /** What a Service asks for now. A frontend that did not change is the same object as before. */
  #serve(path: string, item: ServiceEndpoints): ServedItem {
    const { frontends, problems } = serviceFrontends(path, item, this.#node, this.settings)
    const known = this.wantedBy(path)
    const stable = (frontend: Frontend) => known.find((before) => sameFrontend(before, frontend)) ?? frontend
    return { item, problems, frontends: known.length === 0 ? frontends : frontends.map(stable) }
  }

  #replace(wanted: ReadonlyMap<string, ServedItem | undefined>): FrontendChange[] {
    if (this.#services.size === 0) return this.#fill(wanted)
    const before = new Map<string, Frontend | undefined>()
    const touch = ({ id, kind, address }: Frontend) => {
      before.set(id, this.#claims.owner(id))
      if (kind === 'clusterIP')
        for (const other of this.#claims.idsOn(address)) before.set(other, this.#claims.owner(other))
    }
    for (const [path, next] of wanted) {
      for (const frontend of this.wantedBy(path)) touch(frontend)
      for (const frontend of next?.frontends ?? none) touch(frontend)
    }
    for (const [path, next] of wanted) {
      for (const frontend of this.wantedBy(path)) this.#claims.remove(frontend)
      for (const frontend of next?.frontends ?? none) this.#claims.add(frontend)
      if (next) this.#services.set(path, next)
      else this.#services.delete(path)
    }
    const changed: FrontendChange[] = []
    // A Service that did not change may have won or lost an address by the change of another.
    const services = new Set(wanted.keys())
    for (const [id, was] of before) {
      const is = this.#claims.owner(id)
      if (was !== is) changed.push({ before: was, after: is })
      this.#size += Number(is !== undefined) - Number(was !== undefined)
      for (const { service } of this.#claims.claimants(id)) services.add(service)
    }
    for (const service of services) this.#logProblems(service)
    return changed
  }

  /** `#replace` for an empty table, as at the start: everything is new. */
  #fill(wanted: ReadonlyMap<string, ServedItem | undefined>): FrontendChange[] {
    for (const [path, item] of wanted) {
      if (!item) continue
      this.#services.set(path, item)
      for (const frontend of item.frontends) this.#claims.add(frontend)
    }
    for (const service of wanted.keys()) this.#logProblems(service)
    const changed: FrontendChange[] = []
    for (const after of this.#claims.owners()) changed.push({ before: undefined, after })
    this.#size = changed.length
    return changed
  }

  /** Each problem once, and again if it comes back. */
  #logProblems(service: string): void {
    const problems = this.problemsOf(service)
    if (problems.length === 0) {
      this.#problems.delete(service)
      return
    }
    const before = new Set(this.#problems.get(service)?.map(({ sentence }) => sentence))
    for (const { sentence: reason } of problems) {
      if (!before.has(reason)) this.#log.warn('A part of a Service is not served', { service, reason })
    }
    this.#problems.set(service, problems)
  }
}

/** A Service of the view, and what it asks for. */
interface ServedItem extends ServiceFrontends {
  readonly item: ServiceEndpoints
}

const none: readonly never[] = []

const conflictOf = (frontend: Frontend, owner: Frontend | undefined): string =>
  owner ? `${frontend.id} belongs to Service ${owner.service}` : `${frontend.id} is a cluster IP of another Service`
