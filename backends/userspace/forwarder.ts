import { families } from '@kpng/api'
import type { HeldFrontend, OpenConnection } from '@kpng/client'
import type { Place } from './capture/capture.js'
import { Entrance } from './entrance.js'
import { type Flows, openConnections } from './flows.js'
import type { InsideAddresses } from './insiders.js'
import type { Portal } from './portal.js'
import type { ProxySocket } from './proxy-socket.js'
import { ServicePort } from './service-port.js'
import type { Surroundings } from './surroundings.js'

/** Serves portals: accepts their clients, picks endpoints and carries bytes. In this thread, or in threads of its own. */
export interface Forwarder {
  setInside(addresses: InsideAddresses): void
  /** The portals of a service port as they are now. Without any, it does not exist any more. */
  setServicePort(name: string, portals: readonly Portal[]): void
  /** Resolves when everything that was set holds for new connections. */
  applied(): Promise<void>
  /** Opens a socket for a portal that was set. */
  listen(portal: Portal, place: Place): Promise<ProxySocket>
  /** What is known of a portal. Undefined: it was not set. */
  held(portalId: string): Promise<HeldFrontend | undefined>
  /** The newest connections, and how many there are. */
  open(limit: number): Promise<OpenConnections>
  cleanUpStaleSessions(): void
  /** Ends every connection. */
  abortAll(): void
  /** Frees everything, once the connections have ended. */
  close(): Promise<void>
}

export interface OpenConnections {
  readonly total: number
  readonly connections: readonly OpenConnection[]
}

/** More than sockets need to close after a reset. */
const closingMs = 1000

/** The forwarder of one thread. Which sockets it has is its user's choice. */
export class LocalForwarder implements Omit<Forwarder, 'listen'> {
  readonly #surroundings: Surroundings
  readonly #servicePorts = new Map<string, ServicePort>()
  /** By the ids of portals. */
  readonly #entrances = new Map<string, Entrance>()
  /** Of service ports that do not exist any more but still have connections. */
  readonly #leftFlows = new Set<Flows>()

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings
  }

  setInside(addresses: InsideAddresses): void {
    this.#surroundings.insiders.set(addresses)
  }

  setServicePort(name: string, portals: readonly Portal[]): void {
    const known = this.#servicePorts.get(name)
    if (!known && portals.length === 0) return
    const port = known ?? new ServicePort(name, this.#surroundings)
    this.#servicePorts.set(name, port)
    const ids = new Set(portals.map(({ id }) => id))
    for (const id of port.portals.keys()) if (!ids.has(id)) this.#leave(port, id)
    for (const portal of portals) this.#enter(port, portal)
    if (portals.length > 0) port.refresh()
    else this.#remove(port)
  }

  async applied(): Promise<void> {}

  /** Opens a socket for a portal that was set. */
  async listenWith(portalId: string, open: (entrance: Entrance) => Promise<ProxySocket>): Promise<ProxySocket> {
    const entrance = this.#entrances.get(portalId)
    if (!entrance) throw new TypeError(`The portal ${portalId} is not known.`)
    const { ownSockets } = this.#surroundings
    const { portal } = entrance
    const socket = await open(entrance)
    ownSockets.add(portal, socket.place)
    return {
      place: socket.place,
      close: async () => {
        ownSockets.remove(portal, socket.place)
        await socket.close()
      },
    }
  }

  async held(portalId: string): Promise<HeldFrontend | undefined> {
    return this.#entrances.get(portalId)?.held()
  }

  async open(limit: number): Promise<OpenConnections> {
    return openConnections(this.#allFlows(), limit)
  }

  cleanUpStaleSessions(): void {
    for (const { balancers } of this.#servicePorts.values()) {
      for (const family of families) balancers[family].cleanUpStaleSessions()
    }
  }

  abortAll(): void {
    for (const flows of this.#allFlows()) flows.abortAll()
  }

  async close(): Promise<void> {
    this.abortAll()
    this.#surroundings.descriptors.close()
    // Sockets close a little later; who is told about connections is told about these too.
    const ended = Promise.all(this.#allFlows().map((flows) => flows.none()))
    await new Promise<unknown>((resolve) => {
      const forget = this.#surroundings.later(closingMs, () => resolve(undefined))
      void ended.then(resolve).then(forget)
    })
  }

  #enter(port: ServicePort, portal: Portal): void {
    const known = this.#entrances.get(portal.id)
    port.portals.set(portal.id, portal)
    if (known?.servicePort === port) known.portal = portal
    else {
      known?.addressGone()
      this.#entrances.set(portal.id, new Entrance(port, portal, this.#surroundings))
    }
  }

  #leave(port: ServicePort, id: string): void {
    port.portals.delete(id)
    const entrance = this.#entrances.get(id)
    // Another service port may have the address by now.
    if (entrance?.servicePort !== port) return
    entrance.addressGone()
    this.#entrances.delete(id)
  }

  #remove(port: ServicePort): void {
    this.#servicePorts.delete(port.name)
    port.remove()
    this.#leftFlows.add(port.flows)
    void port.flows.none().then(() => this.#leftFlows.delete(port.flows))
  }

  #allFlows(): Flows[] {
    return [...this.#leftFlows, ...[...this.#servicePorts.values()].map((port) => port.flows)]
  }
}
