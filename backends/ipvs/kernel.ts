import { setImmediate } from 'node:timers/promises'
import { type Cidr, CidrSet, type Family, KpngError, type Log } from '@kpng/api'
import { asStep, type SyncStep } from '@kpng/client'
import { endpointKey } from '@kpng/dataplane'
import { DummyInterface, errnoText } from '@kpng/linux'
import type { FailedOperation, KernelDestination, KernelServer, Operation } from './ipvs-messages.js'
import { Ipvs } from './ipvs-netlink.js'
import { allDestinations } from './listing.js'
import { isOwnTable, markPrefix, type Names } from './names.js'
import { keysInTables } from './nft.js'
import { type KnownDestination, type KnownServer, knownAfter, operationsFor, operationsToMake } from './operations.js'
import { Retirement } from './retirement.js'
import type { Place } from './rules.js'
import type { IpvsState, Update } from './state.js'
import { Tables } from './tables.js'
import { type ServerAddress, serverKey, type VirtualServer } from './virtual-servers.js'

export interface KernelOptions {
  readonly names: Names
  readonly excludeCidrs: readonly Cidr[]
  readonly masqueradeBit: number
  readonly drainLimitMs: number
  readonly drainCheckIntervalMs: number
  readonly log: Log
}

/** A mark that `Marks` never gives: bit 14 is set. */
const probeMark = markPrefix | 0x4000

/** Comparing all virtual servers of a large cluster takes long; syncs must not wait for it. */
const serversAtOnce = 500

/** What kpng has in the kernel: virtual servers, tables of rules, an interface. One call at a time; others wait. */
export class Kernel {
  readonly #options: KernelOptions
  readonly #ipvs: Ipvs
  readonly #interface: DummyInterface
  readonly #retirement: Retirement
  readonly #excluded: CidrSet
  readonly #tables: Tables
  readonly #known = new Map<string, KnownServer>()
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(options: KernelOptions, ipvs: Ipvs, held: DummyInterface, tables: Tables) {
    const { drainLimitMs, drainCheckIntervalMs, log } = options
    this.#options = options
    this.#ipvs = ipvs
    this.#interface = held
    this.#tables = tables
    this.#excluded = new CidrSet(options.excludeCidrs)
    this.#retirement = new Retirement({
      ...{ limitMs: drainLimitMs, intervalMs: drainCheckIntervalMs, log },
      destinationsOf: (key) => this.#inTurn(() => this.#destinationsOf(key)),
      remove: (retired) => this.#inTurn(() => this.#removeRetired(retired)),
    })
  }

  static async open(options: KernelOptions): Promise<Kernel> {
    const { names, masqueradeBit } = options
    const ipvs = await Ipvs.open()
    let held: DummyInterface | undefined
    try {
      held = await DummyInterface.open(names.interfaceName)
      return new Kernel(options, ipvs, held, await Tables.open({ tableName: names.tableName, masqueradeBit }))
    } catch (error) {
      held?.close()
      ipvs.close()
      throw error
    }
  }

  get ipvs(): Ipvs {
    return this.#ipvs
  }

  /** Why the kernel cannot use a scheduler in a family; 0 if it can. Loads its module, if that is allowed. */
  probe(scheduler: string, family: Family): Promise<number> {
    const where = { family, protocol: 'tcp', address: '', port: 0, mark: probeMark } as const
    const server = { ...where, scheduler, persistenceSeconds: 0 }
    return this.#inTurn(async () => {
      await this.#ipvs.change([{ do: 'deleteService', server }])
      const [failed] = await this.#ipvs.change([{ do: 'newService', server }])
      if (!failed) await this.#ipvs.change([{ do: 'deleteService', server }])
      return failed?.errno ?? 0
    })
  }

  /** Makes everything as it should be, whatever is there. What was there and is right stays, with its connections. */
  replace(state: IpvsState, places: readonly Place[], steps?: SyncStep[]): Promise<void> {
    return this.#inTurn(async () => {
      const there = new Map((await this.#ipvs.servers()).map((server) => [server.key, server]))
      const unwanted = [...there.values()].filter(({ key }) => !state.servers.has(key))
      // What the tables of an earlier run say about its virtual servers. Reading them takes long.
      const recorded =
        unwanted.length > 0 ? await keysInTables((name) => name === this.#options.names.tableName) : new Set()
      await this.#interface.ensure()
      const held = await this.#interface.addresses()
      const destinations = await allDestinations()
      const before = new Set(this.#known.keys())
      this.#known.clear()
      for (const key of state.servers.keys()) {
        const server = there.get(key)
        if (server) this.#known.set(key, knownOf(server, destinations.get(key) ?? []))
      }
      await this.#write([...state.servers.values()], steps)
      await this.#tables.replace(state, places, steps)
      const wanted = new Set(state.addresses)
      const extra = [...held].filter((address) => !wanted.has(address) && !this.#excluded.has(address))
      await this.#interface.change(
        [...wanted].filter((address) => !held.has(address)),
        extra,
      )
      const isOurs = ({ key, address }: KernelServer) => recorded.has(key) || before.has(key) || held.has(address)
      await this.#delete(
        unwanted.filter((server) => isOurs(server) && !(server.address && this.#excluded.has(server.address))),
      )
    })
  }

  /** Writes what changed. */
  apply({ servers, elements, addresses }: Update, served: readonly Family[], steps?: SyncStep[]): Promise<void> {
    return this.#inTurn(async () => {
      const shared = await this.#write(
        servers.flatMap(({ after }) => after ?? []),
        steps,
      )
      await this.#tables.change(elements, served, steps)
      // Only now our table says that they are ours. Until then the kpng that had them may have deleted them.
      await this.#writeAgain(shared, steps)
      await this.#interface.change(addresses.add, addresses.remove)
      const gone = servers.flatMap(({ key, after }) => (after ? [] : (this.#known.get(key)?.server ?? [])))
      await this.#delete(gone)
    })
  }

  /** What somebody else changed, as a sentence; undefined if nothing. */
  async driftOf(state: IpvsState, served: readonly Family[]): Promise<string | undefined> {
    const there = new Map((await this.#inTurn(() => this.#ipvs.servers())).map((server) => [server.key, server]))
    const destinations = await allDestinations()
    let compared = 0
    for (const [key, known] of this.#known) {
      if (++compared % serversAtOnce === 0) await setImmediate()
      const server = there.get(key)
      if (!server) return `the virtual server ${key} is gone`
      if (server.scheduler !== known.scheduler || server.persistenceSeconds !== known.persistenceSeconds)
        return `the virtual server ${key} has other settings`
      if (!sameWeights(known, destinations.get(key) ?? [])) return `the virtual server ${key} has other destinations`
    }
    const held = await this.#inTurn(() => this.#interface.addresses())
    const missing = [...state.addresses].find((address) => !held.has(address))
    if (missing !== undefined) return `the interface ${this.#interface.name} no longer has the address ${missing}`
    return await this.#tables.drift(state, served)
  }

  /** Reads back. */
  async server(key: string): Promise<{ server: KernelServer; destinations: readonly KernelDestination[] } | undefined> {
    return this.#inTurn(async () => {
      const server = (await this.#ipvs.servers()).find((each) => each.key === key)
      return server && { server, destinations: await this.#ipvs.destinations(server) }
    })
  }

  /** Everything stays in the kernel. */
  async close(): Promise<void> {
    await this.#retirement.close()
    await this.#turn.catch(() => {})
    this.#tables.close()
    this.#interface.close()
    this.#ipvs.close()
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#turn.then(work)
    this.#turn = result.catch(() => {})
    return result
  }

  /** Resolves with those that are not what we took them for: another kpng, or somebody else, has made or changed them meanwhile. */
  async #write(servers: readonly VirtualServer[], steps: SyncStep[] | undefined): Promise<VirtualServer[]> {
    const refused = await this.#writeOnce(servers, steps)
    const keys = new Set(refused.map(({ operation }) => serverKey(operation.server)))
    const shared = servers.filter(({ key }) => keys.has(key))
    await this.#writeAgain(shared, steps)
    return shared
  }

  /** Makes virtual servers as they should be, whatever others have done to them. */
  async #writeAgain(servers: readonly VirtualServer[], steps: SyncStep[] | undefined): Promise<void> {
    if (servers.length === 0) return
    const there = new Map((await this.#ipvs.servers()).map((server) => [server.key, server]))
    for (const { key } of servers) {
      const server = there.get(key)
      if (server) this.#known.set(key, knownOf(server, await this.#ipvs.destinations(server)))
      else this.#known.delete(key)
    }
    const refused = await this.#writeOnce(servers, steps)
    if (refused.length > 0) throw operationsFailed(refused)
  }

  async #writeOnce(servers: readonly VirtualServer[], steps: SyncStep[] | undefined): Promise<FailedOperation[]> {
    const operations: Operation[] = []
    for (const wanted of servers) {
      const known = this.#known.get(wanted.key)
      const planned = operationsFor(wanted, known)
      for (const operation of planned.operations) operations.push(operation)
      for (const key of wanted.destinations.keys()) this.#retirement.forget(wanted.key, key)
      for (const key of planned.retired) this.#retirement.add(wanted.key, key)
      this.#known.set(wanted.key, knownAfter(wanted, known, planned.retired))
    }
    if (operations.length === 0) return []
    const attributes = { 'kpng.operations': operations.length }
    return await asStep(steps, 'ipvs', attributes, () => this.#ipvs.change(operations))
  }

  /** Deletes virtual servers, unless another kpng of this node has taken them over: a Service may change hands. */
  async #delete(servers: readonly ServerAddress[]): Promise<void> {
    if (servers.length === 0) return
    const ofOthers = () => keysInTables((name) => isOwnTable(name) && name !== this.#options.names.tableName)
    const taken = await ofOthers()
    const own = servers.filter((server) => !taken.has(serverKey(server)))
    await this.#ipvs.change(own.map((server) => ({ do: 'deleteService', server })))
    // Taken over a moment before they were deleted: given back. What the other one has made again meanwhile is refused, and stays.
    const takenSince = own.length > 0 ? await ofOthers() : new Set()
    for (const server of own.filter((each) => takenSince.has(serverKey(each)))) {
      const known = this.#known.get(serverKey(server))
      if (known) await this.#ipvs.change(operationsToMake(known))
    }
    for (const server of servers) {
      this.#known.delete(serverKey(server))
      this.#retirement.forget(serverKey(server))
    }
  }

  async #destinationsOf(key: string): Promise<readonly KernelDestination[] | undefined> {
    const known = this.#known.get(key)
    return known && (await this.#ipvs.destinations(known.server))
  }

  async #removeRetired(retired: readonly { serverKey: string; key: string }[]): Promise<void> {
    const operations: Operation[] = []
    for (const { serverKey: server, key } of retired) {
      const known = this.#known.get(server)
      const destination = known?.destinations.get(key)
      this.#retirement.forget(server, key)
      // It may serve again since it was looked at.
      if (!known || destination?.weight !== 0) continue
      known.destinations.delete(key)
      operations.push({ do: 'deleteDest', server: known.server, destination })
    }
    await this.#ipvs.change(operations)
  }
}

function knownOf(server: KernelServer, there: readonly KernelDestination[]): KnownServer {
  const { scheduler, persistenceSeconds } = server
  const destinations = new Map(there.map(({ ip, port, weight }) => [endpointKey({ ip, port }), { ip, port, weight }]))
  return { server, scheduler, persistenceSeconds, destinations }
}

/** Those of weight 0 do not count: they may have been removed meanwhile, because their connections have ended. */
const sameWeights = ({ destinations }: KnownServer, there: readonly KernelDestination[]): boolean => {
  const serving = (all: Iterable<KnownDestination>) => [...all].filter(({ weight }) => weight > 0)
  const found = serving(there)
  return (
    found.length === serving(destinations.values()).length &&
    found.every((destination) => destinations.get(endpointKey(destination))?.weight === destination.weight)
  )
}

function operationsFailed(failed: readonly FailedOperation[]): KpngError {
  const [first] = failed as [FailedOperation]
  const { operation, errno } = first
  const what =
    'destination' in operation ? `${operation.do} ${endpointKey(operation.destination)} of ` : `${operation.do} `
  const more = failed.length > 1 ? ` and ${failed.length - 1} more` : ''
  return new KpngError(
    'refused',
    `The kernel refused a change of IPVS: ${what}${serverKey(operation.server)}: ${errnoText(errno)}${more}. kpng reads IPVS again and repeats the change.`,
  )
}
