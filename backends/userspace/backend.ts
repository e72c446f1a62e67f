import type { Family } from '@kpng/api'
import type { BackendFeatures, FrontendAddress, HeldFrontend, ObservationListener, Observations } from '@kpng/client'
import {
  backendOf,
  type DataPlane,
  type Frontend,
  type FrontendChange,
  FrontendTable,
  frontendId,
  type SteppedBackend,
  type Wanted,
  type Written,
} from '@kpng/dataplane'
import { interfaceAddresses, linuxHost } from '@kpng/linux'
import type { Steering } from './capture/capture.js'
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

type OwnObservations = Observations & Required<Pick<Observations, 'traffic' | 'failures'>>

export interface UserspaceBackend extends SteppedBackend {
  readonly observations: OwnObservations
}

/** A Service proxy in user space: accepts connections, connects to an endpoint, and copies. */
export function userspaceBackend(options: UserspaceOptions = {}): UserspaceBackend {
  const settings = settingsOf(options)
  const { log, syncPeriodMs: checkIntervalMs, driftCheckIntervalMs, leftovers } = settings
  const frontends = new FrontendTable(options, log)
  const plane = new Userspace(settings, frontends)
  // The flows of proxy sockets are the capture's affair.
  const rest = { checkIntervalMs, driftCheckIntervalMs, leftovers, deleteStaleFlows: false }
  return backendOf(plane, { frontends, host: linuxHost, log, ...rest }) as UserspaceBackend
}

/** What a sync has to settle. */
interface Plan {
  readonly extent: Steering['extent']
  /** Also portals that did not change. */
  readonly everything: boolean
}

/** Portals: listening sockets, and the rules that steer clients to them. */
class Userspace implements DataPlane<void, Plan> {
  readonly name = 'userspace'
  readonly needs = { rights: [], programs: [] }
  readonly lockName?: string
  readonly observations: OwnObservations
  readonly #settings: Settings
  readonly #frontends: FrontendTable
  readonly #nodeAddresses = new NodeAddressBook()
  readonly #portals: PortalTable
  readonly #forwarder: Forwarders
  /** By the name of the service port, then by frontend id. */
  readonly #servicePorts = new Map<string, Map<string, Portal>>()
  /** Services that were reported because a process cannot serve all of their ports. */
  readonly #unsupported = new Set<string>()
  #isOpen = false

  constructor(settings: Settings, frontends: FrontendTable) {
    const counters = new Counters()
    this.#settings = settings
    this.#frontends = frontends
    if (settings.capture.lockName !== undefined) this.lockName = settings.capture.lockName
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

  get families(): readonly Family[] {
    return this.#settings.capture.families
  }

  async open(onNotice: () => void): Promise<void> {
    const { capture, log } = this.#settings
    await capture.setup(onNotice)
    this.#isOpen = true
    await this.#forwarder.start()
    log.info('Proxying in user space', { capture: capture.name, mover: this.#forwarder.mover })
  }

  /** What is on the machine is compared when the capture steers. */
  async read(): Promise<void> {}

  plan({ full, changed, isCheck }: Wanted<void>): Plan {
    const hasMoved = this.#nodeAddresses.update(this.#frontends.node, interfaceAddresses())
    this.#forwarder.setInside(this.#nodeAddresses.inside)
    const touched = new Set(changed.frontends.flatMap((change) => this.#merge(change)))
    for (const name of touched) this.#forwarder.setServicePort(name, this.#portalsOf(name))
    return { extent: full ? 'full' : isCheck ? 'check' : 'changes', everything: full || isCheck || hasMoved }
  }

  /** Portals that somebody removed or that failed come back with a check, and stale sessions go. */
  async write({ extent, everything }: Plan): Promise<Written> {
    await this.#forwarder.applied()
    if (extent === 'check') this.#forwarder.cleanUpStaleSessions()
    await this.#portals.settle(extent, everything)
    return {}
  }

  async drift(): Promise<string | undefined> {
    return this.#settings.capture.missing?.()
  }

  async remove(): Promise<void> {
    await this.#settings.capture.cleanup()
  }

  /** Ends every connection and takes the portals away: nobody would answer them after the process has ended. */
  async close(): Promise<void> {
    this.#forwarder.abortAll()
    this.#servicePorts.clear()
    await this.#portals.closeAll()
    if (this.#isOpen) await this.#settings.capture.cleanup()
    this.#isOpen = false
    await this.#forwarder.close()
  }

  features(): BackendFeatures {
    return {
      name: 'userspace',
      kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
      protocols: ['tcp', 'udp'],
      families: this.families,
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
    const wanted = this.#frontends.get(id)
    const isUnserved = wanted?.inside.endpoints.length === 0 && wanted.outside.endpoints.length === 0
    return isUnserved ? { inside: [], outside: [], otherwise: 'refuse' } : undefined
  }

  /** Hands a frontend to its service port, and takes it from the one that had it. Returns both. */
  #merge({ before, after }: FrontendChange): string[] {
    const id = frontendId((after ?? before) as FrontendAddress)
    const old = this.#portals.wantedFor(id)
    const portal = after && isPortal(after) ? after : undefined
    if (after && !portal) this.#reportUnsupported(after)
    if (before && this.#frontends.wantedBy(before.service).length === 0) this.#unsupported.delete(before.service)
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
}

/** Only the rules of nftables know who asks before the process has accepted the connection. */
function dropsOf({ name, listensOnPortals }: Settings['capture']): Required<BackendFeatures>['drops'] {
  if (name === 'nft') return 'not-own-sources'
  return listensOnPortals ? 'never' : 'unserved'
}
