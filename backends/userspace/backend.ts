import { messageOf } from '@kpng/api'
import type { Backend, Changes, NodeView, ServiceEndpoints } from '@kpng/client'
import type { OnConnection } from './connection-record.js'
import { Counters, type ServicePortCounters } from './counters.js'
import { Descriptors } from './descriptors.js'
import type { Flows } from './flows.js'
import { Insiders } from './insiders.js'
import { type Settings, settingsOf, type UserspaceOptions } from './options.js'
import { OwnSockets } from './own-sockets.js'
import { servicePortName } from './portal.js'
import { PortalTable } from './portal-table.js'
import { ServicePort } from './service-port.js'
import type { Surroundings } from './surroundings.js'

export interface UserspaceBackend extends Backend {
  /** Ends every connection and takes the portals away: for the end of the process, after which nobody would answer them. */
  close(): Promise<void>
  /** By service port (`namespace/name:port`). */
  readonly counters: ReadonlyMap<string, Readonly<ServicePortCounters>>
  /** By portal (`namespace/name:port|address`): why it is not open though it should be. */
  failures(): ReadonlyMap<string, string>
  /**
   * Told once about each TCP connection and UDP session that ends, those that reached no endpoint included (in UDP that is each
   * datagram of a client without one); may be set at any time and holds for those that begin afterwards. Default: undefined, which
   * costs nothing. It must not throw.
   */
  onConnection: OnConnection | undefined
}

/** A Service proxy in user space: accepts connections, connects to an endpoint, and copies. */
export function userspaceBackend(options: UserspaceOptions = {}): UserspaceBackend {
  return new Proxier(settingsOf(options))
}

/** More than sockets need to close after a reset. */
const closingMs = 1000

interface MergedService {
  readonly ports: ReadonlyMap<string, ServicePort>
  readonly portals: ReadonlySet<string>
}

class Proxier implements UserspaceBackend {
  readonly #settings: Settings
  readonly #surroundings: Surroundings
  readonly #counters = new Counters()
  readonly #portals: PortalTable
  #services = new Map<string, MergedService>()
  /** Of service ports that are no more, but have connections still. */
  readonly #leftFlows = new Set<Flows>()
  #ensureTimer: NodeJS.Timeout | undefined
  /** Syncs and ensures happen one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(settings: Settings) {
    this.#settings = settings
    this.#surroundings = {
      ...settings,
      drainMs: settings.drainSeconds * 1000,
      counters: this.#counters,
      descriptors: new Descriptors(settings.log),
      insiders: new Insiders(settings.clusterCidrs),
      ownSockets: new OwnSockets(),
      onConnection: undefined,
    }
    this.#portals = new PortalTable(settings.capture, this.#surroundings)
  }

  get counters(): ReadonlyMap<string, Readonly<ServicePortCounters>> {
    return this.#counters.byServicePort
  }

  get onConnection(): OnConnection | undefined {
    return this.#surroundings.onConnection
  }

  set onConnection(tell: OnConnection | undefined) {
    this.#surroundings.onConnection = tell
  }

  failures(): ReadonlyMap<string, string> {
    return this.#portals.failures()
  }

  async setup(): Promise<void> {
    const { capture, syncPeriodMs, log } = this.#settings
    await capture.setup()
    log.info('Proxying in user space', { capture: capture.name })
    if (syncPeriodMs === 0) return
    this.#ensureTimer = setInterval(() => void this.#ensure(), syncPeriodMs)
    this.#ensureTimer.unref()
  }

  sync(view: NodeView, changes: Changes): Promise<void> {
    return this.#inTurn(async () => {
      if (changes.full || changes.node) this.#surroundings.insiders.setNode(view.node)
      const paths = changes.full
        ? new Set([...view.services.keys(), ...this.#services.keys()])
        : changes.services.keys()
      for (const path of paths) this.#merge(path, view.services.get(path))
      // What belongs to the node (who is inside) is in every capture's rules.
      await this.#portals.settle(changes.full || changes.node)
    })
  }

  async cleanup(): Promise<void> {
    await this.#inTurn(() => this.#settings.capture.cleanup())
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#ensureTimer)
    await this.#inTurn(async () => {
      const current = [...this.#services.values()].flatMap(({ ports }) => [...ports.values()])
      const flows = [...this.#leftFlows, ...current.map((port) => port.flows)]
      for (const some of flows) some.abortAll()
      this.#services.clear()
      this.#surroundings.descriptors.close()
      await this.#portals.closeAll()
      // Sockets close a little later; who is told about connections is told about these too.
      await withinMs(closingMs, Promise.all(flows.map((some) => some.none())))
    })
  }

  /** Brings one service's ports and portals to its newest state; undefined: it is gone. */
  #merge(path: string, after: ServiceEndpoints | undefined): void {
    const before = this.#services.get(path)
    const ports = new Map<string, ServicePort>()
    const portals = new Set<string>()
    for (const port of after?.service.ports ?? []) {
      const name = servicePortName((after as ServiceEndpoints).service, port)
      const servicePort = before?.ports.get(name) ?? ports.get(name) ?? new ServicePort(name, this.#surroundings)
      ports.set(name, servicePort)
      for (const plan of servicePort.update(after as ServiceEndpoints, port))
        portals.add(this.#portals.want(servicePort, plan))
    }
    for (const name of before?.portals ?? []) if (!portals.has(name)) this.#portals.unwant(name)
    for (const [name, port] of before?.ports ?? []) if (!ports.has(name)) this.#remove(port)
    if (after) this.#services.set(path, { ports, portals })
    else this.#services.delete(path)
  }

  #remove(port: ServicePort): void {
    port.remove()
    this.#leftFlows.add(port.flows)
    void port.flows.none().then(() => this.#leftFlows.delete(port.flows))
  }

  /** The periodic part of the sync loop: portals that somebody removed or that failed come back, stale sessions go. */
  async #ensure(): Promise<void> {
    try {
      await this.#inTurn(async () => {
        if (this.#closed) return
        this.#settings.log.detail(6, 'Periodic sync')
        this.#surroundings.insiders.refresh()
        for (const { ports } of this.#services.values()) {
          for (const { balancers } of ports.values()) {
            balancers.v4.cleanUpStaleSessions()
            balancers.v6.cleanUpStaleSessions()
          }
        }
        await this.#portals.settle(true)
      })
    } catch (error) {
      this.#settings.log.error('Failed to ensure portals; they are tried again with the next sync', {
        error: messageOf(error),
      })
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work, work)
    this.#last = turn.catch(() => {})
    return turn
  }
}

/** Waits for something, but not longer. */
async function withinMs(ms: number, something: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([something, over])
  clearTimeout(timer)
}
