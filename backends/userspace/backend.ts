import { messageOf } from '@kpng/api'
import type {
  BackendFeatures,
  Changes,
  FrontendAddress,
  HeldFrontend,
  NodeView,
  ObservationListener,
  Observations,
} from '@kpng/client'
import {
  DriftWatch,
  type Frontend,
  type FrontendBackend,
  type FrontendChange,
  FrontendTable,
  frontendId,
} from '@kpng/dataplane'
import { interfaceAddresses, reachableAddresses } from '@kpng/linux'
import { Counters } from './counters.js'
import { Descriptors } from './descriptors.js'
import { Forwarders } from './forwarders.js'
import { Insiders } from './insiders.js'
import { later } from './later.js'
import { NodeAddressBook } from './node-addresses.js'
import { type Settings, settingsOf, type UserspaceOptions } from './options.js'
import { OwnSockets } from './own-sockets.js'
import { isPortal, type Portal, servicePortName } from './portal.js'
import { PortalTable } from './portal-table.js'

export interface UserspaceBackend extends FrontendBackend {
  features(): BackendFeatures
  held(frontend: FrontendAddress): Promise<HeldFrontend | undefined>
  readonly observations: Observations & Required<Pick<Observations, 'traffic' | 'failures'>>
}

/** A Service proxy in user space: accepts connections, connects to an endpoint, and copies. */
export function userspaceBackend(options: UserspaceOptions = {}): UserspaceBackend {
  return new Proxier(settingsOf(options), options)
}

const noChanges: Changes = { full: false, services: new Map(), node: false, serviceCidrs: false, triggers: [] }

class Proxier implements UserspaceBackend {
  readonly frontends: FrontendTable
  readonly observations: UserspaceBackend['observations']
  readonly #settings: Settings
  readonly #nodeAddresses = new NodeAddressBook()
  readonly #portals: PortalTable
  readonly #forwarder: Forwarders
  /** By the name of the service port, then by frontend id. */
  readonly #servicePorts = new Map<string, Map<string, Portal>>()
  /** Services that were reported because a process cannot serve all of their ports. */
  readonly #unsupported = new Set<string>()
  #view: NodeView | undefined
  #checkTimer: NodeJS.Timeout | undefined
  #driftWatch: DriftWatch | undefined
  #isChecking = false
  /** Syncs and checks happen one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  /** How many syncs and checks have begun. */
  #turns = 0
  /** The machine holds what the last one of them wrote. */
  #isInStep = false
  #isSetUp = false
  #closed = false

  constructor(settings: Settings, options: UserspaceOptions) {
    const counters = new Counters()
    this.#settings = settings
    this.frontends = new FrontendTable(options, settings.log)
    let listener: ObservationListener = {}
    this.observations = {
      traffic: counters.byServicePort,
      open: (limit) => this.#forwarder.open(limit),
      failures: () => this.#portals.failures(),
      get listener() {
        return listener
      },
      set listener(newOne) {
        listener = newOne
        forwarder().observe()
      },
    }
    const forwarder = () => this.#forwarder
    const descriptors = new Descriptors(settings.log)
    this.#forwarder = new Forwarders({
      ...settings,
      drainMs: settings.drainSeconds * 1000,
      counters,
      descriptors,
      insiders: new Insiders(),
      ownSockets: new OwnSockets(),
      observations: this.observations,
      later,
    })
    this.#portals = new PortalTable({
      log: settings.log,
      capture: settings.capture,
      descriptors,
      nodeAddresses: () => this.#nodeAddresses.addresses,
      listen: (portal, place) => this.#forwarder.listen(portal, place),
    })
  }

  async setup(): Promise<void> {
    const { capture, syncPeriodMs, driftCheckIntervalMs, log } = this.#settings
    await capture.setup()
    this.#isSetUp = true
    await this.#forwarder.start()
    log.info('Proxying in user space', { capture: capture.name, mover: this.#forwarder.mover })
    this.#driftWatch = new DriftWatch({
      ...{ log, intervalMs: capture.missing ? driftCheckIntervalMs : 0 },
      lastSync: () => (this.#isInStep ? this.#turns : undefined),
      look: async () => capture.missing?.(),
      // It looks at everything, and warns of what it repairs.
      onDrift: () => void this.#check(),
    })
    if (syncPeriodMs === 0) return
    this.#checkTimer = setInterval(() => void this.#check(), syncPeriodMs)
    this.#checkTimer.unref()
  }

  sync(view: NodeView, changes: Changes): Promise<void> {
    return this.#inTurn(async () => {
      this.#view = view
      const hasMoved = this.#apply(view, changes)
      await this.#forwarder.applied()
      await this.#settle(changes.full ? 'full' : 'changes', changes.full || hasMoved)
    })
  }

  async cleanup(): Promise<void> {
    await this.#inTurn(() => this.#settings.capture.cleanup())
  }

  /** Ends every connection and takes the portals away: nobody would answer them after the process has ended. */
  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#checkTimer)
    await this.#driftWatch?.close()
    await this.#inTurn(async () => {
      this.#forwarder.abortAll()
      this.#servicePorts.clear()
      await this.#portals.closeAll()
      if (this.#isSetUp) await this.#settings.capture.cleanup()
      await this.#forwarder.close()
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
      mover: this.#forwarder.mover,
    }
  }

  async held(frontend: FrontendAddress): Promise<HeldFrontend | undefined> {
    const id = frontendId(frontend)
    const open = this.#portals.openAt(id)
    if (open) return this.#forwarder.held(id)
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
    const hasMoved = this.#nodeAddresses.update(this.frontends.node, onMachine)
    this.#forwarder.setInside(this.#nodeAddresses.inside)
    const touched = new Set(frontends.flatMap((change) => this.#merge(change)))
    for (const name of touched) this.#forwarder.setServicePort(name, this.#portalsOf(name))
    return hasMoved
  }

  /** Hands a frontend to its service port, and takes it from the one that had it. Returns both. */
  #merge({ before, after }: FrontendChange): string[] {
    const id = frontendId((after ?? before) as FrontendAddress)
    const old = this.#portals.wantedFor(id)
    const portal = after && isPortal(after) ? after : undefined
    if (after && !portal) this.#reportUnsupported(after)
    if (before && this.frontends.wantedBy(before.service).length === 0) this.#unsupported.delete(before.service)
    const name = portal && servicePortName(portal)
    if (old !== undefined && old !== name) {
      const portals = this.#servicePorts.get(old)
      portals?.delete(id)
      if (portals?.size === 0) this.#servicePorts.delete(old)
      this.#portals.unwant(id)
    }
    if (portal && name !== undefined) {
      const portals = this.#servicePorts.get(name)
      if (portals) portals.set(id, portal)
      else this.#servicePorts.set(name, new Map([[id, portal]]))
      this.#portals.want(name, portal)
    }
    return [old, name].filter((each) => each !== undefined)
  }

  #portalsOf(servicePort: string): Portal[] {
    return [...(this.#servicePorts.get(servicePort)?.values() ?? [])]
  }

  #reportUnsupported({ service, protocol }: Frontend): void {
    if (this.#unsupported.has(service)) return
    this.#unsupported.add(service)
    const reason = `the userspace proxy does not support ${protocol === 'any' ? 'whole addresses' : protocol.toUpperCase()}`
    this.#settings.log.warn('A part of a Service is not served', { service, reason })
  }

  /** Every period: portals that somebody removed or that failed come back, stale sessions go. Writes only what differs. */
  async #check(): Promise<void> {
    // Checks that take longer than the period must not queue up before a sync.
    if (this.#isChecking) return
    this.#isChecking = true
    try {
      await this.#inTurn(async () => {
        if (this.#closed || !this.#view) return
        this.#settings.log.detail(6, 'Periodic sync')
        this.#apply(this.#view, noChanges)
        this.#forwarder.cleanUpStaleSessions()
        await this.#settle('check', true)
      })
    } catch (error) {
      this.#settings.log.error('Failed to check the portals; they are tried again in the next period', {
        error: messageOf(error),
      })
    } finally {
      this.#isChecking = false
    }
  }

  async #settle(...how: Parameters<PortalTable['settle']>): Promise<void> {
    this.#turns++
    this.#isInStep = false
    await this.#portals.settle(...how)
    this.#isInStep = true
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
