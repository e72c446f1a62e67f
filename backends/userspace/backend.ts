import { families, messageOf } from '@kpng/api'
import type { BackendFeatures, Changes, FrontendAddress, HeldFrontend, NodeView, Observations } from '@kpng/client'
import { type Frontend, type FrontendBackend, type FrontendChange, FrontendTable, frontendId } from '@kpng/dataplane'
import { interfaceAddresses, reachableAddresses } from '@kpng/linux'
import { Counters } from './counters.js'
import { Descriptors } from './descriptors.js'
import { type Flows, openConnections } from './flows.js'
import { Insiders } from './insiders.js'
import { type Settings, settingsOf, type UserspaceOptions } from './options.js'
import { OwnSockets } from './own-sockets.js'
import { isPortal, servicePortName } from './portal.js'
import { PortalTable } from './portal-table.js'
import { ServicePort } from './service-port.js'
import type { Surroundings } from './surroundings.js'

export interface UserspaceBackend extends FrontendBackend {
  features(): BackendFeatures
  held(frontend: FrontendAddress): Promise<HeldFrontend | undefined>
  readonly observations: Observations & Required<Pick<Observations, 'traffic' | 'failures'>>
}

/** A Service proxy in user space: accepts connections, connects to an endpoint, and copies. */
export function userspaceBackend(options: UserspaceOptions = {}): UserspaceBackend {
  return new Proxier(settingsOf(options), options)
}

/** More than sockets need to close after a reset. */
const closingMs = 1000

const noChanges: Changes = { full: false, services: new Map(), node: false, serviceCidrs: false, triggers: [] }

class Proxier implements UserspaceBackend {
  readonly frontends: FrontendTable
  readonly observations: UserspaceBackend['observations']
  readonly #settings: Settings
  readonly #surroundings: Surroundings
  readonly #portals: PortalTable
  readonly #servicePorts = new Map<string, ServicePort>()
  /** Services that were reported because a process cannot serve all of their ports. */
  readonly #unsupported = new Set<string>()
  /** Of service ports that do not exist any more but still have connections. */
  readonly #leftFlows = new Set<Flows>()
  #view: NodeView | undefined
  #checkTimer: NodeJS.Timeout | undefined
  /** Syncs and checks happen one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #isSetUp = false
  #closed = false

  constructor(settings: Settings, options: UserspaceOptions) {
    const counters = new Counters()
    this.#settings = settings
    this.frontends = new FrontendTable(options, settings.log)
    this.observations = {
      traffic: counters.byServicePort,
      open: (limit) => openConnections(this.#allFlows(), limit),
      failures: () => this.#portals.failures(),
      listener: {},
    }
    this.#surroundings = {
      ...settings,
      drainMs: settings.drainSeconds * 1000,
      counters,
      descriptors: new Descriptors(settings.log),
      insiders: new Insiders(),
      ownSockets: new OwnSockets(),
      observations: this.observations,
    }
    this.#portals = new PortalTable(settings.capture, this.#surroundings)
  }

  async setup(): Promise<void> {
    const { capture, syncPeriodMs, log } = this.#settings
    await capture.setup()
    this.#isSetUp = true
    log.info('Proxying in user space', { capture: capture.name })
    if (syncPeriodMs === 0) return
    this.#checkTimer = setInterval(() => void this.#check(), syncPeriodMs)
    this.#checkTimer.unref()
  }

  sync(view: NodeView, changes: Changes): Promise<void> {
    return this.#inTurn(async () => {
      this.#view = view
      const hasMoved = this.#apply(view, changes)
      await this.#portals.settle(changes.full ? 'full' : 'changes', changes.full || hasMoved)
    })
  }

  async cleanup(): Promise<void> {
    await this.#inTurn(() => this.#settings.capture.cleanup())
  }

  /** Ends every connection and takes the portals away: nobody would answer them after the process has ended. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#checkTimer)
    await this.#inTurn(async () => {
      const flows = this.#allFlows()
      for (const some of flows) some.abortAll()
      this.#servicePorts.clear()
      this.#surroundings.descriptors.close()
      await this.#portals.closeAll()
      if (this.#isSetUp) await this.#settings.capture.cleanup()
      // Sockets close a little later; who is told about connections is told about these too.
      await withinMs(closingMs, Promise.all(flows.map((some) => some.none())))
    })
  }

  features(): BackendFeatures {
    return {
      name: 'userspace',
      kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
      protocols: ['tcp', 'udp'],
      families: this.#settings.capture.families,
      sessionAffinity: true,
      sourceRanges: true,
      wholeAddresses: false,
      keepsSourceAddress: false,
      localhostNodePorts: true,
      guardsClusterIps: false,
      drops: dropsOf(this.#settings.capture),
      counters: true,
      directServerReturn: false,
    }
  }

  async held(frontend: FrontendAddress): Promise<HeldFrontend | undefined> {
    const id = frontendId(frontend)
    const open = this.#portals.openAt(id)
    if (open) return open.held()
    // Where nobody serves, nothing listens: connections are refused.
    const wanted = this.frontends.get(id)
    const isUnserved = wanted?.inside.endpoints.length === 0 && wanted.outside.endpoints.length === 0
    return isUnserved ? { inside: [], outside: [], otherwise: 'refuse' } : undefined
  }

  /** Takes the newest state. Returns whether addresses of this node have changed. */
  #apply(view: NodeView, changes: Changes): boolean {
    const onMachine = interfaceAddresses()
    const machine = { families: this.#settings.capture.families, addresses: reachableAddresses() }
    const { frontends } = this.frontends.apply(view, changes, machine)
    const hasMoved = this.#surroundings.insiders.update(this.frontends.node, onMachine)
    const touched = new Set(frontends.flatMap((change) => this.#merge(change)))
    for (const port of touched) {
      if (port.portals.size > 0) port.refresh()
      else this.#remove(port)
    }
    return hasMoved
  }

  /** Hands a frontend to its service port, and takes it from the one that had it. Returns both. */
  #merge({ before, after }: FrontendChange): ServicePort[] {
    const id = frontendId((after ?? before) as FrontendAddress)
    const old = this.#portals.wantedFor(id)
    const portal = after && isPortal(after) ? after : undefined
    if (after && !portal) this.#reportUnsupported(after)
    if (before && this.frontends.wantedBy(before.service).length === 0) this.#unsupported.delete(before.service)
    const port = portal && this.#servicePort(servicePortName(portal))
    if (old && old !== port) {
      old.portals.delete(id)
      this.#portals.unwant(id)
    }
    if (port) {
      port.portals.set(id, portal)
      this.#portals.want(port, portal)
    }
    return [old, port].filter((each) => each !== undefined)
  }

  #allFlows(): Flows[] {
    return [...this.#leftFlows, ...[...this.#servicePorts.values()].map((port) => port.flows)]
  }

  #servicePort(name: string): ServicePort {
    const port = this.#servicePorts.get(name) ?? new ServicePort(name, this.#surroundings)
    this.#servicePorts.set(name, port)
    return port
  }

  #remove(port: ServicePort): void {
    this.#servicePorts.delete(port.name)
    port.remove()
    this.#leftFlows.add(port.flows)
    void port.flows.none().then(() => this.#leftFlows.delete(port.flows))
  }

  #reportUnsupported({ service, protocol }: Frontend): void {
    if (this.#unsupported.has(service)) return
    this.#unsupported.add(service)
    const reason = `the userspace proxy does not support ${protocol === 'any' ? 'whole addresses' : protocol.toUpperCase()}`
    this.#settings.log.warn('A part of a Service is not served', { service, reason })
  }

  /** Every period: portals that somebody removed or that failed come back, stale sessions go. Writes only what differs. */
  async #check(): Promise<void> {
    try {
      await this.#inTurn(async () => {
        if (this.#closed || !this.#view) return
        this.#settings.log.detail(6, 'Periodic sync')
        this.#apply(this.#view, noChanges)
        for (const { balancers } of this.#servicePorts.values()) {
          for (const family of families) balancers[family].cleanUpStaleSessions()
        }
        await this.#portals.settle('check', true)
      })
    } catch (error) {
      this.#settings.log.error('Failed to check the portals; they are tried again in the next period', {
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

/** Only the rules of nftables know who asks before the process has accepted the connection. */
function dropsOf({ name, listensOnPortals }: Settings['capture']): Required<BackendFeatures>['drops'] {
  if (name === 'nft') return 'not-own-sources'
  return listensOnPortals ? 'never' : 'unserved'
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
