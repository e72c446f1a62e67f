import { KpngError, type Log, messageOf } from '@kpng/api'
import type { Capture, OpenPortal, Place } from './capture/capture.js'
import { ClusterIps } from './cluster-ips.js'
import { Entrance } from './entrance.js'
import { describePortal } from './own-sockets.js'
import { portalAddress, portalName } from './portal.js'
import { failureSentence } from './portal-failure.js'
import { openProxySocket, type ProxySocket } from './proxy-socket.js'
import type { PortalPlan, ServicePort } from './service-port.js'
import type { Surroundings } from './surroundings.js'

interface Wanted {
  readonly entrance: Entrance
  /** Why it is not open, as last logged: the same failure is told once. */
  failure: string
}

interface Listening {
  readonly entrance: Entrance
  readonly socket: ProxySocket
  /** As the capture was last told. Undefined: not yet. */
  steered: OpenPortal | undefined
}

/** A port of the range may be taken by another program; so many others are tried. */
const maxPlaces = 8

/**
 * Which portals shall be open, which are, and how to get from one to the other. A portal whose name stays is never closed:
 * changes of its endpoints, policies and ranges reach it through its entrance.
 */
export class PortalTable {
  readonly #capture: Capture
  readonly #surroundings: Surroundings
  readonly #log: Log
  readonly #wanted = new Map<string, Wanted>()
  readonly #open = new Map<string, Listening>()
  /** Who has an address. Two portals with the same one cannot both be open. */
  readonly #owners = new Map<string, string>()
  readonly #clusterIps = new ClusterIps()
  /** Names of portals that could not be opened; they are tried again with each sync. */
  readonly #failed = new Set<string>()
  /** Names whose portal may differ from what the capture was told. */
  readonly #touched = new Set<string>()

  constructor(capture: Capture, surroundings: Surroundings) {
    this.#capture = capture
    this.#surroundings = surroundings
    this.#log = surroundings.log
  }

  /** Merges a portal: a new one will be opened, a known one gets its newest plan. */
  want(servicePort: ServicePort, plan: PortalPlan): string {
    const name = portalName(plan.portal)
    const known = this.#wanted.get(name)
    if (known && known.entrance.servicePort === servicePort) known.entrance.plan = plan
    else {
      this.#log.detail(1, 'Adding new service', { servicePortPortalName: name, protocol: plan.portal.protocol })
      this.#wanted.set(name, { entrance: new Entrance(servicePort, plan, this.#surroundings), failure: '' })
    }
    this.#clusterIps.want(name, plan.portal)
    this.#touched.add(name)
    return name
  }

  /** Unmerges a portal: it will be closed. */
  unwant(name: string): void {
    this.#log.detail(1, 'Stopping service', { servicePortPortalName: name })
    const entrance = this.#wanted.get(name)?.entrance
    if (entrance) this.#clusterIps.unwant(name, entrance.plan.portal)
    entrance?.addressGone()
    this.#wanted.delete(name)
    this.#touched.add(name)
  }

  /** Opens and closes what `want` and `unwant` asked for. `full`: whatever the machine holds is written anew. */
  async settle(full: boolean): Promise<void> {
    const leaving = new Map<string, Listening>()
    for (const name of full ? this.#open.keys() : this.#affected()) {
      const listening = this.#open.get(name)
      if (!listening || this.#stays(name, listening)) continue
      leaving.set(name, listening)
      this.#touched.add(name)
    }
    if (this.#capture.listensOnPortals) for (const [name, listening] of leaving) await this.#close(name, listening)
    await this.#openWanted(full ? [...this.#wanted.keys()] : this.#candidates(), leaving)
    await this.#steer(full, leaving)
    if (this.#capture.listensOnPortals) return
    // Only now: a proxy port that is still steered to must not become another service's.
    for (const [name, listening] of leaving) await this.#close(name, listening)
    // What found its port range used up, or its own name still open, may now have its turn.
    if (leaving.size > 0 && (await this.#openWanted(this.#candidates(leaving.keys()), new Map())) > 0)
      await this.#steer(false, new Map())
  }

  /** Closes every socket and takes the portals away. */
  async closeAll(): Promise<void> {
    this.#wanted.clear()
    for (const [name, listening] of [...this.#open]) await this.#close(name, listening)
    await this.#capture.cleanup()
  }

  get openCount(): number {
    return this.#open.size
  }

  /** By portal name: why a portal that should be open is not. */
  failures(): ReadonlyMap<string, string> {
    return new Map([...this.#failed].map((name) => [name, this.#wanted.get(name)?.failure ?? '']))
  }

  /** Portals that were asked about, and those that have their addresses. */
  #affected(): Set<string> {
    const owners = [...this.#touched].flatMap((name) => {
      const portal = this.#wanted.get(name)?.entrance.plan.portal
      return (portal && this.#owners.get(portalAddress(portal))) ?? []
    })
    return new Set([...this.#touched, ...owners])
  }

  #stays(name: string, { entrance, socket }: Listening): boolean {
    return (
      this.#wanted.get(name)?.entrance === entrance &&
      this.#shallListen(entrance) &&
      !this.#clusterIps.forbids(entrance.plan.portal) &&
      this.#capture.isRight(entrance.plan.portal, socket.place, this.#surroundings.insiders.nodeIps)
    )
  }

  /** Without endpoints, not to listen is the clearest refusal, where no capture can give it. */
  #shallListen({ plan: { fates } }: Entrance): boolean {
    return !this.#capture.listensOnPortals || fates.inside === 'forward' || fates.outside === 'forward'
  }

  #candidates(more: Iterable<string> = []): Set<string> {
    return new Set([...this.#touched, ...this.#failed, ...more])
  }

  async #openWanted(names: Iterable<string>, leaving: ReadonlyMap<string, Listening>): Promise<number> {
    let opened = 0
    for (const name of names) {
      const wanted = this.#wanted.get(name)
      this.#failed.delete(name)
      if (!wanted || this.#open.has(name)) continue
      if (!this.#shallListen(wanted.entrance)) wanted.failure = ''
      else if (await this.#tryOpen(name, wanted, leaving)) opened++
      else this.#failed.add(name)
    }
    return opened
  }

  async #tryOpen(name: string, wanted: Wanted, leaving: ReadonlyMap<string, Listening>): Promise<boolean> {
    const { portal } = wanted.entrance.plan
    const owner = this.#owners.get(portalAddress(portal))
    try {
      if (this.#clusterIps.forbids(portal)) {
        throw new KpngError('unavailable', "The address is another service's cluster IP; give this one another.")
      }
      if (owner !== undefined && owner !== name && !leaving.has(owner)) {
        throw new KpngError('unavailable', `The address is ${owner.split('|')[0]}'s already; give one of them another.`)
      }
      const socket = await this.#listen(wanted.entrance)
      this.#surroundings.ownSockets.add(portal, socket.place)
      this.#open.set(name, { entrance: wanted.entrance, socket, steered: undefined })
      this.#owners.set(portalAddress(portal), name)
      this.#touched.add(name)
      this.#log.detail(2, 'Proxying for service', { ...describePortal(portal), listen: socket.place })
      wanted.failure = ''
      return true
    } catch (error) {
      const failure = failureSentence(error, portal)
      if (failure !== wanted.failure)
        this.#log.error('Failed to start proxy', { ...describePortal(portal), error: failure })
      wanted.failure = failure
      return false
    }
  }

  async #listen(entrance: Entrance): Promise<ProxySocket> {
    const { portal } = entrance.plan
    const busy: Place[] = []
    try {
      for (;;) {
        const place = await this.#capture.place(portal, this.#surroundings.insiders.nodeIps)
        try {
          return await openProxySocket(entrance, place)
        } catch (error) {
          busy.push(place)
          const inUse = (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
          if (!inUse || this.#capture.listensOnPortals || busy.length >= maxPlaces) throw error
        }
      }
    } finally {
      for (const place of busy) await this.#capture.release(portal, place)
    }
  }

  async #close(name: string, { entrance, socket }: Listening): Promise<void> {
    const { portal } = entrance.plan
    socket.close()
    this.#surroundings.ownSockets.remove(portal, socket.place)
    if (this.#open.get(name)?.socket === socket) this.#open.delete(name)
    if (this.#owners.get(portalAddress(portal)) === name) this.#owners.delete(portalAddress(portal))
    try {
      await this.#capture.release(portal, socket.place)
    } catch (error) {
      this.#log.error('Failed to close portal', { ...describePortal(portal), error: messageOf(error) })
    }
  }

  async #steer(full: boolean, leaving: ReadonlyMap<string, Listening>): Promise<void> {
    const added: OpenPortal[] = []
    const removed: OpenPortal[] = []
    const told: [Listening, OpenPortal][] = []
    for (const { steered } of leaving.values()) if (steered) removed.push(steered)
    for (const name of full ? this.#open.keys() : this.#touched) {
      const listening = this.#open.get(name)
      if (!listening || leaving.get(name) === listening) continue
      const { portal, fates } = listening.entrance.plan
      const current = { portal, fates, place: listening.socket.place }
      if (listening.steered) removed.push(listening.steered)
      added.push(current)
      told.push([listening, current])
    }
    if (full || added.length > 0 || removed.length > 0) {
      const { insiders } = this.#surroundings
      await this.#capture.steer({
        open: this.#allOpen(leaving),
        added,
        removed,
        full,
        insideCidrs: insiders.cidrs,
        nodeIps: insiders.nodeIps,
      })
    }
    for (const [listening, current] of told) listening.steered = current
    this.#touched.clear()
  }

  #allOpen(leaving: ReadonlyMap<string, Listening>): OpenPortal[] {
    return [...this.#open]
      .filter(([name, listening]) => leaving.get(name) !== listening)
      .map(([, { entrance, socket }]) => ({
        portal: entrance.plan.portal,
        fates: entrance.plan.fates,
        place: socket.place,
      }))
  }
}
