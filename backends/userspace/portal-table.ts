import { KpngError, type Log, messageOf } from '@kpng/api'
import { frontendId } from '@kpng/dataplane'
import type { Capture, NodeAddresses, OpenPortal, Place, Steering } from './capture/capture.js'
import type { Descriptors } from './descriptors.js'
import { describePortal, fateOf, isServed, type Portal } from './portal.js'
import { failureSentence } from './portal-failure.js'
import type { ProxySocket } from './proxy-socket.js'

/** A portal that should be open. */
interface Wanted {
  readonly servicePort: string
  /** As it is now. Its address never changes; its endpoints and source ranges do. */
  portal: Portal
}

interface Listening {
  readonly wanted: Wanted
  readonly socket: ProxySocket
  /** As the capture was last told. Undefined: not yet. */
  steered: OpenPortal | undefined
}

const tooManyFiles = (): KpngError =>
  new KpngError(
    'unavailable',
    'Too many files are open to serve another port of a service. Raise the limit (ulimit -n, LimitNOFILE=) to at least twice the number of service ports.',
  )

/** A port of the range may be taken by another program; so many others are tried. */
const maxPlaces = 8

export interface PortalTableOptions {
  readonly log: Log
  readonly capture: Capture
  readonly descriptors: Descriptors
  readonly nodeAddresses: () => NodeAddresses
  readonly listen: (portal: Portal, place: Place) => Promise<ProxySocket>
}

/**
 * Which portals shall be open, which are, and how to get from one to the other. A portal that stays with its service port is not
 * closed: changes of its endpoints and source ranges are the forwarder's affair.
 */
export class PortalTable {
  readonly #options: PortalTableOptions
  readonly #capture: Capture
  readonly #log: Log
  /** By frontend id, like everything here. */
  readonly #wanted = new Map<string, Wanted>()
  /** One for each address that the portal listens at. */
  readonly #open = new Map<string, readonly Listening[]>()
  /** To be closed once no packet is steered there. */
  readonly #leaving = new Set<Listening>()
  /** Why a portal is not open at an address, as last logged. Such portals are tried again with each sync. */
  readonly #failures = new Map<string, ReadonlyMap<string, string>>()
  /** Ids whose portal may differ from what the capture was told. */
  readonly #touched = new Set<string>()

  constructor(options: PortalTableOptions) {
    this.#options = options
    this.#capture = options.capture
    this.#log = options.log
  }

  /** A new portal will be opened; one that is known gets its newest state. */
  want(servicePort: string, portal: Portal): void {
    const id = frontendId(portal)
    const known = this.#wanted.get(id)
    if (known) known.portal = portal
    else {
      this.#log.detail(1, 'Adding new service', { servicePort, portal: id })
      this.#wanted.set(id, { servicePort, portal })
    }
    this.#touched.add(id)
  }

  /** The portal will be closed. */
  unwant(id: string): void {
    const wanted = this.#wanted.get(id)
    if (!wanted) return
    this.#log.detail(1, 'Stopping service', { servicePort: wanted.servicePort, portal: id })
    this.#wanted.delete(id)
    this.#touched.add(id)
  }

  /** The service port that a portal is wanted for. */
  wantedFor(id: string): string | undefined {
    return this.#wanted.get(id)?.servicePort
  }

  /** A portal that is open. */
  openAt(id: string): Portal | undefined {
    return this.#open.get(id)?.[0]?.wanted.portal
  }

  /**
   * Opens and closes what `want` and `unwant` asked for.
   * @param everything also looks at portals that did not change, because the node's addresses may have changed
   */
  async settle(extent: Steering['extent'], everything: boolean): Promise<void> {
    const ids = everything
      ? new Set([...this.#wanted.keys(), ...this.#open.keys()])
      : new Set([...this.#touched, ...this.#failures.keys()])
    for (const id of ids) this.#retire(id)
    if (this.#capture.listensOnPortals) await this.#closeLeaving()
    for (const id of ids) await this.#openMissing(id)
    await this.#steer(extent, everything)
    if (this.#leaving.size === 0) return
    // Only now: a proxy port that packets are still steered to must not become another service's.
    await this.#closeLeaving()
    // A portal that found the port range used up may have its turn now.
    const waiting = [...this.#failures.keys()]
    for (const id of waiting) await this.#openMissing(id)
    await this.#steer('changes', false)
  }

  /** Closes every socket. */
  async closeAll(): Promise<void> {
    this.#wanted.clear()
    for (const id of [...this.#open.keys()]) this.#retire(id)
    await this.#closeLeaving()
  }

  /** Why portals that should be open are not. */
  failures(): ReadonlyMap<string, string> {
    const all = new Map<string, string>()
    for (const [id, hosts] of this.#failures) {
      for (const [host, reason] of hosts) all.set(hosts.size > 1 ? `${id} at ${host}` : id, reason)
    }
    return all
  }

  /** Where a portal should listen. Without endpoints, not to listen is the clearest refusal, where no capture can give it. */
  #hosts(id: string): readonly string[] {
    const portal = this.#wanted.get(id)?.portal
    if (!portal || (this.#capture.listensOnPortals && !isServed(portal))) return []
    return this.#capture.hosts(portal, this.#options.nodeAddresses())
  }

  /** Takes out what should not be open any more. */
  #retire(id: string): void {
    const open = this.#open.get(id)
    if (!open) return
    const hosts = this.#hosts(id)
    const wanted = this.#wanted.get(id)
    const stays = (each: Listening) => each.wanted === wanted && hosts.includes(each.socket.place.ip)
    for (const each of open) if (!stays(each)) this.#leaving.add(each)
    this.#setOpen(id, open.filter(stays))
  }

  async #openMissing(id: string): Promise<void> {
    const wanted = this.#wanted.get(id)
    const told = this.#failures.get(id)
    const failures = new Map<string, string>()
    for (const host of this.#hosts(id)) {
      const open = this.#open.get(id) ?? []
      if (!wanted || open.some(({ socket }) => socket.place.ip === host)) continue
      try {
        const socket = await this.#listen(wanted.portal, host)
        this.#setOpen(id, [...open, { wanted, socket, steered: undefined }])
        this.#touched.add(id)
        this.#log.detail(2, 'Proxying for service', { ...describePortal(wanted.portal), listen: socket.place })
      } catch (error) {
        const reason = failureSentence(error, wanted.portal)
        failures.set(host, reason)
        if (reason === told?.get(host)) continue
        this.#log.error('Failed to start proxy', { ...describePortal(wanted.portal), error: reason })
      }
    }
    if (failures.size > 0) this.#failures.set(id, failures)
    else this.#failures.delete(id)
  }

  #setOpen(id: string, listening: readonly Listening[]): void {
    if (listening.length > 0) this.#open.set(id, listening)
    else this.#open.delete(id)
  }

  async #listen(portal: Portal, ip: string): Promise<ProxySocket> {
    if (!this.#options.descriptors.canListen) throw tooManyFiles()
    const busy: Place[] = []
    try {
      for (;;) {
        const place = { ip, port: await this.#capture.allocate(portal, ip) }
        try {
          return await this.#options.listen(portal, place)
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

  async #closeLeaving(): Promise<void> {
    const leaving = [...this.#leaving]
    this.#leaving.clear()
    await Promise.all(leaving.map(({ socket }) => socket.close()))
    for (const { wanted, socket } of leaving) {
      try {
        await this.#capture.release(wanted.portal, socket.place)
      } catch (error) {
        this.#log.error('Failed to close portal', { ...describePortal(wanted.portal), error: messageOf(error) })
      }
    }
  }

  async #steer(extent: Steering['extent'], everything: boolean): Promise<void> {
    const added: OpenPortal[] = []
    const removed = [...this.#leaving].flatMap(({ steered }) => steered ?? [])
    const told: [Listening, OpenPortal][] = []
    for (const id of everything ? this.#open.keys() : this.#touched) {
      for (const each of this.#open.get(id) ?? []) {
        const current = { portal: each.wanted.portal, place: each.socket.place }
        if (each.steered && isSteeredAlike(each.steered.portal, current.portal)) continue
        if (each.steered) removed.push(each.steered)
        added.push(current)
        told.push([each, current])
      }
    }
    if (everything || added.length + removed.length > 0) {
      const open = [...this.#open.values()].flat()
      await this.#capture.steer({
        extent,
        open: open.map(({ wanted, socket }) => ({ portal: wanted.portal, place: socket.place })),
        added,
        removed,
        node: this.#options.nodeAddresses(),
      })
    }
    for (const [each, current] of told) each.steered = current
    this.#touched.clear()
  }
}

/** Whether a capture need not be told: who the endpoints are is nothing to it. */
const isSteeredAlike = (a: Portal, b: Portal): boolean =>
  fateOf(a.inside) === fateOf(b.inside) && fateOf(a.outside) === fateOf(b.outside) && sourcesOf(a) === sourcesOf(b)

const sourcesOf = ({ allowedSources }: Portal): string | undefined => allowedSources?.map(({ text }) => text).join()
