import { CidrSet, type Family, familyOf } from '@kpng/api'
import { type Frontend, type FrontendTable, frontendId, type NodeFacts } from '@kpng/dataplane'
import { Marks } from './names.js'
import { type Element, elementsOf } from './rule-elements.js'
import { markNames, type VirtualServer, virtualServers } from './virtual-servers.js'

/** What the state needs to know about the machine and the Services. */
export interface StateInput {
  /** The addresses of the machine's own interfaces, without the one that holds the addresses of Services. */
  readonly ownAddresses: ReadonlySet<string>
  /** Where node ports are open, by family. */
  readonly nodePortAddresses: Readonly<Record<Family, readonly string[]>>
  /** The scheduler of a Service (`namespace/name`). */
  readonly schedulerOf: (service: string) => string
  /** The scheduler for session affinity where a virtual server cannot be persistent. Default `sh`. */
  readonly hashScheduler?: string
  /** Whether the kernel can serve a frontend. */
  readonly serves: (frontend: Frontend) => boolean
}

export const emptyInput: StateInput = {
  ownAddresses: new Set(),
  nodePortAddresses: { IPv4: [], IPv6: [] },
  schedulerOf: () => 'rr',
  serves: () => true,
}

/** What differs after a change. */
export interface Update {
  /** Each virtual server once; `after` is undefined if it is gone. */
  readonly servers: readonly { readonly key: string; readonly after: VirtualServer | undefined }[]
  readonly elements: Readonly<Record<Family, Difference<Element>>>
  /** Of the dummy interface. */
  readonly addresses: Difference<string>
}

export interface Difference<Value> {
  readonly add: readonly Value[]
  readonly remove: readonly Value[]
}

/** What one frontend needs in the kernel. */
interface Plan {
  readonly family: Family
  readonly servers: readonly VirtualServer[]
  readonly elements: readonly Element[]
  /** Of the dummy interface. Undefined: none, as for node ports. */
  readonly address: string | undefined
  readonly marks: readonly string[]
}

/** What the kernel should hold. A change costs what changed. */
export class IpvsState {
  readonly #table: FrontendTable
  readonly #marks = new Marks()
  readonly #plans = new Map<string, Plan>()
  readonly #servers = new Map<string, VirtualServer>()
  readonly #elements: Readonly<Record<Family, Counted<Element>>> = {
    IPv4: new Counted(elementId),
    IPv6: new Counted(elementId),
  }
  readonly #addresses = new Counted<string>((address) => address)
  #input = emptyInput

  constructor(table: FrontendTable) {
    this.#table = table
  }

  get servers(): ReadonlyMap<string, VirtualServer> {
    return this.#servers
  }

  /** The addresses of the dummy interface. */
  get addresses(): Iterable<string> {
    return this.#addresses.values()
  }

  elements(family: Family): Iterable<Element> {
    return this.#elements[family].values()
  }

  /** Starts over with everything in the table. */
  rebuild(input: StateInput): void {
    this.#input = input
    const ids = new Set(this.#plans.keys())
    for (const { id } of this.#table.all()) ids.add(id)
    this.change(ids)
  }

  /** @param ids of frontends that may differ */
  change(ids: Iterable<string>): Update {
    const affected = this.#affected(ids)
    /** Those that are touched, as they were. */
    const servers = new Map<string, VirtualServer | undefined>()
    // First all that goes: a virtual server may pass from one frontend to another.
    for (const id of affected) {
      for (const { key } of this.#plans.get(id)?.servers ?? []) {
        servers.set(key, this.#servers.get(key))
        this.#servers.delete(key)
      }
    }
    for (const id of affected) this.#replace(id, servers)
    const changed = [...servers].flatMap(([key, before]) => {
      const after = this.#servers.get(key)
      return after === before ? [] : [{ key, after }]
    })
    return {
      servers: changed,
      elements: { IPv4: this.#elements.IPv4.difference(), IPv6: this.#elements.IPv6.difference() },
      addresses: this.#addresses.difference(),
    }
  }

  /** A Service's address may be one of the node's, and then takes ports from node ports. */
  #affected(ids: Iterable<string>): Set<string> {
    const all = new Set(ids)
    for (const id of [...all]) {
      const frontend = this.#table.get(id)
      const plan = this.#plans.get(id)
      for (const { family, protocol, port, address } of [...(plan?.servers ?? []), ...(frontend ? [frontend] : [])]) {
        if (protocol === 'any' || !this.#input.ownAddresses.has(address)) continue
        all.add(frontendId({ kind: 'nodePort', family, address: '', protocol, port }))
      }
    }
    return all
  }

  #replace(id: string, touched: Map<string, VirtualServer | undefined>): void {
    const before = this.#plans.get(id)
    const frontend = this.#table.get(id)
    const after = frontend && this.#input.serves(frontend) ? this.#planOf(frontend) : undefined
    for (const server of after?.servers ?? []) {
      const known = touched.get(server.key)
      if (!touched.has(server.key)) touched.set(server.key, undefined)
      this.#servers.set(server.key, known && sameServer(known, server) ? known : server)
    }
    for (const plan of [after, before]) {
      const by = plan === after ? 1 : -1
      for (const element of plan?.elements ?? []) if (plan) this.#elements[plan.family].count(element, by)
      if (plan?.address !== undefined) this.#addresses.count(plan.address, by)
    }
    for (const mark of before?.marks ?? []) if (!after?.marks.includes(mark)) this.#marks.release(mark)
    if (after) this.#plans.set(id, after)
    else this.#plans.delete(id)
  }

  #planOf(frontend: Frontend): Plan {
    const { family, kind, address } = frontend
    const { ownAddresses, schedulerOf, hashScheduler = 'sh' } = this.#input
    const nodePortAddresses = kind === 'nodePort' ? this.#openAddresses(frontend) : []
    const servers = virtualServers(frontend, {
      scheduler: schedulerOf(frontend.service),
      ...{ hashScheduler, nodePortAddresses, marks: this.#marks },
    })
    const elements = elementsOf(frontend, nodePortAddresses, this.#marks)
    const isHeld = kind !== 'nodePort' && !ownAddresses.has(address)
    const protocols = new Set(servers.filter(({ mark }) => mark !== 0).map(({ protocol }) => protocol))
    return {
      ...{ family, servers },
      elements: isHeld ? [...elements, { set: 'addresses', key: address }] : elements,
      address: isHeld ? address : undefined,
      marks: [...protocols].flatMap((protocol) => Object.values(markNames(frontend, protocol))),
    }
  }

  #openAddresses({ family, protocol, port }: Frontend): string[] {
    return this.#input.nodePortAddresses[family].filter(
      (address) => !this.#table.get(frontendId({ kind: 'externalIP', family, address, protocol, port })),
    )
  }
}

/** Values that several frontends may need. */
class Counted<Value> {
  readonly #idOf: (value: Value) => string
  readonly #counts = new Map<string, { readonly value: Value; count: number }>()
  /** Those that were counted since the last difference, and whether they were there before. */
  readonly #touched = new Map<string, { readonly value: Value; readonly wasThere: boolean }>()

  constructor(idOf: (value: Value) => string) {
    this.#idOf = idOf
  }

  *values(): Iterable<Value> {
    for (const { value } of this.#counts.values()) yield value
  }

  count(value: Value, by: 1 | -1): void {
    const id = this.#idOf(value)
    const known = this.#counts.get(id)
    if (!this.#touched.has(id)) this.#touched.set(id, { value, wasThere: known !== undefined })
    if (!known) this.#counts.set(id, { value, count: by })
    else if (known.count + by === 0) this.#counts.delete(id)
    else known.count += by
  }

  difference(): Difference<Value> {
    const add: Value[] = []
    const remove: Value[] = []
    for (const [id, { value, wasThere }] of this.#touched) {
      if (this.#counts.has(id) === wasThere) continue
      if (wasThere) remove.push(value)
      else add.push(value)
    }
    this.#touched.clear()
    return { add, remove }
  }
}

const elementId = ({ set, key, value = '' }: Element): string => `${set} ${key} : ${value}`

function sameServer(a: VirtualServer, b: VirtualServer): boolean {
  return (
    a.scheduler === b.scheduler &&
    a.persistenceSeconds === b.persistenceSeconds &&
    sameKeys(a.destinations, b.destinations) &&
    sameKeys(a.mayKeepClients, b.mayKeepClients)
  )
}

const sameKeys = (a: ReadonlyMap<string, unknown> | ReadonlySet<string>, b: typeof a): boolean =>
  a.size === b.size && [...a.keys()].every((key) => b.has(key))

/** Sorts addresses by their family. */
export const addressesByFamily = (addresses: Iterable<string>): Record<Family, string[]> => {
  const found: Record<Family, string[]> = { IPv4: [], IPv6: [] }
  for (const address of addresses) found[familyOf(address)].push(address)
  return found
}

/** Those of some addresses at which node ports are open. */
export function openAddresses({ nodePortCidrs }: NodeFacts, addresses: readonly string[]): Record<Family, string[]> {
  const open = new CidrSet(Object.values(nodePortCidrs).flat())
  return addressesByFamily(addresses.filter((address) => open.has(address)))
}
