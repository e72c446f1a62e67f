import { type Log, silentLog } from '@kpng/api'
import type { Backend, Changes, NodeView, ServiceEndpoints } from '@kpng/client'
import { Claims } from './claims.js'
import { type Frontend, sameFrontend } from './frontend.js'
import { type Machine, type NodeFacts, nodeFacts, sameFacts, sameForFrontends, unknownNode } from './node.js'
import { type ServiceFrontends, serviceFrontends } from './service-frontends.js'
import { type DataplaneOptions, type DataplaneSettings, dataplaneSettings } from './settings.js'

/** A frontend before and after; undefined where it did not or does not exist. */
export interface FrontendChange {
  readonly before: Frontend | undefined
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
  readonly #claims = new Claims()
  readonly #problems: Problems
  /** As of the last `apply`. */
  readonly #items = new Map<string, ServiceEndpoints>()
  readonly #byService = new Map<string, readonly Frontend[]>()
  #node: NodeFacts = unknownNode

  constructor(options: DataplaneOptions = {}, log: Log = silentLog) {
    this.settings = dataplaneSettings(options)
    this.#problems = new Problems(log)
  }

  /** This node, as of the last `apply`. */
  get node(): NodeFacts {
    return this.#node
  }

  /** Every frontend that is served. */
  all(): Iterable<Frontend> {
    return this.#claims.owners()
  }

  /** The frontend with an id (see `frontendId`) that is served. */
  get(id: string): Frontend | undefined {
    return this.#claims.owner(id)
  }

  /** What a Service asks for, whether it is served or another Service owns the address. */
  wantedBy(service: string): readonly Frontend[] {
    return this.#byService.get(service) ?? none
  }

  /** Which parts of a Service are not served, as sentences. */
  problemsOf(service: string): readonly string[] {
    return this.#problems.of(service)
  }

  apply(view: NodeView, changes: Changes, machine: Machine): FrontendChanges {
    const nodeBefore = this.#node
    // A node without a Node object has the addresses of the machine, and no event says when they change.
    const mayDiffer = changes.full || changes.node || changes.serviceCidrs || !view.node || nodeBefore === unknownNode
    const node = mayDiffer ? nodeFacts(view, machine, this.settings) : nodeBefore
    this.#node = node === nodeBefore || sameFacts(nodeBefore, node) ? nodeBefore : node
    const isOtherNode = this.#node !== nodeBefore && !sameForFrontends(nodeBefore, node)
    const paths =
      changes.full || isOtherNode ? new Set([...this.#items.keys(), ...view.services.keys()]) : changes.services.keys()
    const wanted = new Map<string, ServiceFrontends>()
    for (const path of paths) {
      const item = view.services.get(path)
      // A Service is never changed in place: the same object asks for the same frontends.
      if (!isOtherNode && item === this.#items.get(path)) continue
      wanted.set(path, this.#frontendsOf(path, item))
      if (item) this.#items.set(path, item)
      else this.#items.delete(path)
    }
    return {
      full: changes.full,
      frontends: this.#replace(wanted),
      nodeBefore: this.#node === nodeBefore ? undefined : nodeBefore,
    }
  }

  /** What a Service asks for now. A frontend that did not change is the same object as before. */
  #frontendsOf(path: string, item: ServiceEndpoints | undefined): ServiceFrontends {
    if (!item) return { frontends: none, problems: [] }
    const { frontends, problems } = serviceFrontends(path, item, this.#node, this.settings)
    const known = this.wantedBy(path)
    if (known.length === 0) return { frontends, problems }
    const stable = frontends.map((frontend) => known.find((before) => sameFrontend(before, frontend)) ?? frontend)
    return { frontends: stable, problems }
  }

  #replace(wanted: ReadonlyMap<string, ServiceFrontends>): FrontendChange[] {
    const before = new Map<string, Frontend | undefined>()
    const touch = (id: string) => before.set(id, this.#claims.owner(id))
    for (const [path, { frontends }] of wanted) {
      for (const frontend of [...this.wantedBy(path), ...frontends]) {
        touch(frontend.id)
        if (frontend.kind === 'clusterIP') for (const id of this.#claims.idsOn(frontend.address)) touch(id)
      }
    }
    for (const [path, { frontends }] of wanted) {
      for (const frontend of this.wantedBy(path)) this.#claims.remove(frontend)
      for (const frontend of frontends) this.#claims.add(frontend)
      if (frontends.length > 0) this.#byService.set(path, frontends)
      else this.#byService.delete(path)
    }
    const changed: FrontendChange[] = []
    for (const [id, was] of before) {
      const is = this.#claims.owner(id)
      if (was !== is) changed.push({ before: was, after: is })
    }
    this.#reportProblems(wanted, before.keys())
    return changed
  }

  /** A Service that did not change may have gained or lost an address because another one changed. */
  #reportProblems(wanted: ReadonlyMap<string, ServiceFrontends>, touched: Iterable<string>): void {
    const services = new Set(wanted.keys())
    for (const id of touched) for (const { service } of this.#claims.claimants(id)) services.add(service)
    for (const service of services) {
      const conflicts = this.wantedBy(service).flatMap((frontend) => {
        const owner = this.#claims.owner(frontend.id)
        return owner === frontend ? [] : [conflictOf(frontend, owner)]
      })
      this.#problems.set(service, { own: wanted.get(service)?.problems, conflicts })
    }
  }
}

const none: readonly Frontend[] = []

const conflictOf = (frontend: Frontend, owner: Frontend | undefined): string =>
  owner ? `${frontend.id} belongs to Service ${owner.service}` : `${frontend.id} is a cluster IP of another Service`

interface ServiceProblems {
  /** Problems of the Service itself. */
  readonly own: readonly string[]
  /** Addresses that belong to another Service. */
  readonly conflicts: readonly string[]
}

/** Logs which parts of a Service are not served: each problem once, and again if it comes back. */
class Problems {
  readonly #log: Log
  readonly #known = new Map<string, ServiceProblems>()

  constructor(log: Log) {
    this.#log = log
  }

  /** @param own undefined: as before */
  set(service: string, { own, conflicts }: { own: readonly string[] | undefined; conflicts: readonly string[] }): void {
    const before = this.of(service)
    const problems = { own: own ?? this.#known.get(service)?.own ?? [], conflicts }
    if (problems.own.length + conflicts.length > 0) this.#known.set(service, problems)
    else this.#known.delete(service)
    for (const reason of this.of(service)) {
      if (!before.includes(reason)) this.#log.warn('A part of a Service is not served', { service, reason })
    }
  }

  of(service: string): readonly string[] {
    const { own = [], conflicts = [] } = this.#known.get(service) ?? {}
    return [...own, ...conflicts]
  }
}

/** A backend that builds on a table and shows it, so that metrics, health checks and `kpng explain` need none of their own. */
export interface FrontendBackend extends Backend {
  /** As of the last sync. */
  readonly frontends: FrontendTable
}
