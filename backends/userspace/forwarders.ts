import { KpngError, messageOf } from '@kpng/api'
import type { HeldFrontend } from '@kpng/client'
import type { Place } from './capture/capture.js'
import type { Counters } from './counters.js'
import type { Forwarder, OpenConnections } from './forwarder.js'
import type { InsideAddresses } from './insiders.js'
import type { Mover, Settings } from './options.js'
import { PortableForwarder } from './portable-forwarder.js'
import type { Portal } from './portal.js'
import type { ProxySocket } from './proxy-socket.js'
import { SpliceForwarder } from './splice/forwarder.js'
import type { Surroundings } from './surroundings.js'

type Options = Surroundings & Settings & { readonly counters: Counters }

/** Who forwards what: TCP by splice where that works, the rest in this thread. */
export class Forwarders implements Forwarder {
  readonly #options: Options
  readonly #portable: PortableForwarder
  #splice: SpliceForwarder | undefined

  constructor(options: Options) {
    this.#options = options
    this.#portable = new PortableForwarder(options, options.byteMover)
  }

  /** How TCP is forwarded. */
  get mover(): Mover {
    return this.#splice ? 'splice' : 'portable'
  }

  /** Finds out what works. Before any portal is set. */
  async start(): Promise<void> {
    const { mover, log } = this.#options
    if (mover === 'portable') return
    try {
      this.#splice = await this.#startSplice()
    } catch (error) {
      const reason = messageOf(error)
      if (mover === 'splice') {
        const advice = 'Leave --mover out, or give --mover portable'
        throw new KpngError('unsupported', `TCP cannot be forwarded by splice: ${reason} ${advice}.`, { cause: error })
      }
      log.detail(1, 'TCP is not forwarded by splice', { reason })
    }
  }

  /** The log's verbosity or the listener may have changed. */
  observe(): void {
    this.#splice?.tellWishes()
  }

  setInside(addresses: InsideAddresses): void {
    for (const forwarder of this.#all()) forwarder.setInside(addresses)
  }

  setServicePort(name: string, portals: readonly Portal[]): void {
    const spliced = this.#splice ? portals.filter(({ protocol }) => protocol === 'tcp') : []
    this.#splice?.setServicePort(name, spliced)
    this.#portable.setServicePort(
      name,
      portals.filter((portal) => !spliced.includes(portal)),
    )
  }

  async applied(): Promise<void> {
    await this.#splice?.applied()
  }

  listen(portal: Portal, place: Place): Promise<ProxySocket> {
    return (portal.protocol === 'tcp' && this.#splice ? this.#splice : this.#portable).listen(portal, place)
  }

  async held(portalId: string): Promise<HeldFrontend | undefined> {
    return (await this.#portable.held(portalId)) ?? (await this.#splice?.held(portalId))
  }

  async open(limit: number): Promise<OpenConnections> {
    const parts = await Promise.all(this.#all().map((forwarder) => forwarder.open(limit)))
    const newest = parts.flatMap(({ connections }) => connections).sort((a, b) => b.sinceMs - a.sinceMs)
    return { total: parts.reduce((sum, { total }) => sum + total, 0), connections: newest.slice(0, limit) }
  }

  cleanUpStaleSessions(): void {
    for (const forwarder of this.#all()) forwarder.cleanUpStaleSessions()
  }

  abortAll(): void {
    for (const forwarder of this.#all()) forwarder.abortAll()
  }

  async close(): Promise<void> {
    await Promise.all(this.#all().map((forwarder) => forwarder.close()))
  }

  #startSplice(): Promise<SpliceForwarder> {
    const { spliceScript: script, spliceThreads: threads } = this.#options
    if (!script) throw new KpngError('unsupported', 'kpng runs from its sources.')
    return SpliceForwarder.start({ ...this.#options, script, threads })
  }

  #all(): Forwarder[] {
    return this.#splice ? [this.#portable, this.#splice] : [this.#portable]
  }
}
