import { hostname, release } from 'node:os'
import { type Family, families, familyOf, isLoopback, KpngError } from '@kpng/api'
import type {
  BackendFeatures,
  Changes,
  FrontendAddress,
  HeldFrontend,
  NodeView,
  Observations,
  Runner,
  SyncStep,
} from '@kpng/client'
import {
  allFlowChecks,
  briefly,
  DriftWatch,
  type Frontend,
  type FrontendBackend,
  FrontendTable,
  flowChecks,
  StaleFlowRemoval,
} from '@kpng/dataplane'
import {
  applySetting,
  checkNetworkRights,
  deleteFlows,
  errnoText,
  hasIpv6,
  interfaceAddresses,
  isLinkLocal,
  lockName,
  type NameLock,
  reachableAddresses,
  sysctlPath,
} from '@kpng/linux'
import { asRedirected } from './flows.js'
import { heldIn } from './held.js'
import { Kernel } from './kernel.js'
import { checkRules, readTable } from './nft.js'
import { type IpvsOptions, type Settings, type SysctlChanges, settingsOf } from './options.js'
import { removeAll } from './removal.js'
import { placeOf, tableText } from './rules.js'
import { Schedulers } from './schedulers.js'
import { IpvsState, openAddresses, type StateInput } from './state.js'
import { neededSysctls } from './sysctls.js'

/** Serves one node's view with IPVS. */
export function ipvsBackend(options: IpvsOptions = {}): FrontendBackend {
  return new IpvsBackend(settingsOf(options), options.name !== undefined)
}

/** What was opened at the start. */
interface Started {
  readonly families: readonly Family[]
  readonly kernel: Kernel
  readonly schedulers: Schedulers
  readonly hashScheduler: string
  readonly drift: DriftWatch
}

/**
 * States: *unknown*, until a full sync has compared everything with the kernel, and again after a failure; *in step* with the kernel,
 * when a change writes only what changed; *syncing* in between.
 */
class IpvsBackend implements FrontendBackend {
  readonly frontends: FrontendTable
  readonly observations: Observations = { listener: {} }
  readonly #settings: Settings
  readonly #isNamed: boolean
  readonly #flows: StaleFlowRemoval
  readonly #state: IpvsState
  #started: Started | undefined
  #lock: NameLock | undefined
  #ownAddresses = ''
  #inStep = false
  #syncing = false
  #syncs = 0

  constructor(settings: Settings, isNamed: boolean) {
    const { log } = settings
    this.#settings = settings
    this.#isNamed = isNamed
    this.frontends = new FrontendTable(settings.dataplane, log)
    this.#state = new IpvsState(this.frontends)
    this.#flows = new StaleFlowRemoval({
      ...{ table: this.frontends, log },
      deleteFlows: (selection, isStale) => deleteFlows(selection, (flow) => isStale(asRedirected(flow))),
      onRemoved: (...seen) => this.observations.listener.staleFlows?.(...seen),
    })
  }

  async setup(runner: Runner): Promise<void> {
    const { names, name, log, scheduler, timeouts, masqueradeBit } = this.#settings
    checkNetworkRights('IPVS')
    this.#lock = await lockName(`IPVS of ${names.interfaceName}`, `kpng (pid ${process.pid}) on ${hostname()}`)
    const kernel = await Kernel.open(this.#settings)
    try {
      const served = await this.#usableFamilies(kernel)
      const nowhere = served.map((family) => placeOf(family, this.frontends.node, this.#settings.dataplane.detectLocal))
      await checkRules(
        nowhere.map((place) => tableText(place, [], { tableName: 'kpng-check', masqueradeBit })).join(''),
      )
      const schedulers = new Schedulers(scheduler, (wanted) => kernel.probe(wanted, 'IPv4'), log)
      await this.#setSysctls()
      if (timeouts.tcp + timeouts.tcpFin + timeouts.udp > 0) await kernel.ipvs.setTimeouts(timeouts)
      const drift = new DriftWatch({
        ...{ log, intervalMs: this.#settings.driftCheckIntervalMs },
        lastSync: () => (this.#inStep && !this.#syncing ? this.#syncs : undefined),
        look: () => this.#lookForDrift(kernel, served),
        onDrift: (reason) => runner.requestFullSync(reason),
      })
      const hashScheduler = await schedulers.hashScheduler()
      this.#started = { families: served, kernel, schedulers, hashScheduler, drift }
    } catch (error) {
      await kernel.close()
      throw error
    }
    log.info('Serving with IPVS', { scheduler, interface: names.interfaceName, name })
  }

  async sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void> {
    const started = this.#open()
    const wasInStep = this.#inStep && !changes.full
    this.#inStep = false
    this.#syncing = true
    this.#syncs++
    try {
      const changed = this.frontends.apply(view, changes, machineOf(started))
      const reScheduled = await started.schedulers.apply(view, changes)
      const isSamePlace = changed.nodeBefore === undefined && wasInStep
      if (isSamePlace) {
        const ids = new Set(
          changed.frontends.flatMap(({ before, after }) => [before, after].flatMap((each) => each?.id ?? [])),
        )
        for (const service of reScheduled) for (const { id } of this.frontends.wantedBy(service)) ids.add(id)
        await started.kernel.apply(this.#state.change(ids), started.families, steps)
      } else await this.#syncAll(started, steps)
      this.#inStep = true
      const checks = isSamePlace ? flowChecks(changed.frontends) : allFlowChecks(this.frontends)
      if (this.#settings.deleteStaleFlows && checks.length > 0) await briefly(this.#flows.remove(checks))
    } finally {
      this.#syncing = false
    }
  }

  /** Virtual servers, rules and addresses stay and go on serving. */
  async close(): Promise<void> {
    const started = this.#started
    this.#started = undefined
    this.#inStep = false
    await started?.drift.close()
    await started?.kernel.close()
    await this.#flows.close()
    await this.#lock?.release()
    this.#lock = undefined
  }

  async cleanup(): Promise<void> {
    await this.close()
    const { names, log, excludeCidrs } = this.#settings
    await removeAll({ only: this.#isNamed ? names : undefined, excludeCidrs, log })
  }

  async hasRules(): Promise<boolean> {
    const { families: served } = this.#open()
    for (const family of served) {
      const table = await readTable(family, this.#settings.names.tableName)
      if ((table?.sets.get('servers')?.size ?? 0) > 0) return true
    }
    return false
  }

  features(): BackendFeatures {
    return {
      name: 'ipvs',
      kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
      protocols: ['tcp', 'udp', 'sctp'],
      families: this.#started?.families ?? [],
      sessionAffinity: true,
      sourceRanges: true,
      wholeAddresses: true,
      keepsSourceAddress: true,
      localhostNodePorts: false,
      hasServiceAddresses: true,
      counters: false,
      directServerReturn: false,
    }
  }

  async held(frontend: FrontendAddress): Promise<HeldFrontend | undefined> {
    const { kernel } = this.#open()
    const table = await readTable(frontend.family, this.#settings.names.tableName)
    return table && (await heldIn(table, frontend, (key) => kernel.server(key)))
  }

  #open(): Started {
    if (this.#started) return this.#started
    throw new KpngError('usage', 'The IPVS backend was not set up. Call setup() first.')
  }

  /** The families that this host and its IPVS have. Rejects if the scheduler is missing. */
  async #usableFamilies(kernel: Kernel): Promise<readonly Family[]> {
    const { scheduler, ipv6, log } = this.#settings
    const errno = await kernel.probe(scheduler, 'IPv4')
    if (errno !== 0) {
      throw new KpngError(
        'unsupported',
        `The kernel cannot use the IPVS scheduler ${scheduler}: ${errnoText(errno)}. Load the module ip_vs_${scheduler} (modprobe ip_vs_${scheduler}), or choose another scheduler.`,
      )
    }
    if (ipv6 === false) return ['IPv4']
    const why = !hasIpv6()
      ? 'this host has no IPv6'
      : (await kernel.probe(scheduler, 'IPv6'))
        ? 'its IPVS has no IPv6'
        : undefined
    if (why === undefined) return families
    if (ipv6 === true) {
      throw new KpngError('unsupported', `IPv6 is required, but ${why}. Enable it, or serve IPv4 only.`)
    }
    log.info(`Only IPv4 is served: ${why}`)
    return ['IPv4']
  }

  async #setSysctls(): Promise<void> {
    const { log, onSysctlsChanged, strictArp } = this.#settings
    const changes: SysctlChanges = {}
    for (const [name, value] of neededSysctls(strictArp, release())) {
      const setting = { path: sysctlPath(name), value }
      const onChanged = (before: number) => {
        changes[setting.path] = { before, value }
      }
      await applySetting(setting, { log, onChanged })
    }
    if (Object.keys(changes).length > 0) await onSysctlsChanged(changes)
  }

  async #syncAll(
    { kernel, families: served, schedulers, hashScheduler }: Started,
    steps: SyncStep[] | undefined,
  ): Promise<void> {
    const { node } = this.frontends
    const places = served.map((family) => placeOf(family, node, this.#settings.dataplane.detectLocal))
    const own = ownAddresses()
    this.#ownAddresses = own.join()
    const input: StateInput = {
      ownAddresses: new Set(own),
      nodePortAddresses: openAddresses(node, own.filter(canServe)),
      schedulerOf: (service) => schedulers.of(service),
      hashScheduler,
      serves: ({ family }: Frontend) => served.includes(family),
    }
    this.#state.rebuild(input)
    await kernel.replace(this.#state, places, steps)
  }

  async #lookForDrift(kernel: Kernel, served: readonly Family[]): Promise<string | undefined> {
    if (ownAddresses().join() !== this.#ownAddresses) return "the addresses of this node's interfaces changed"
    return await kernel.driftOf(this.#state, served)
  }
}

/** Each address once: several interfaces may have it. */
const ownAddresses = (): string[] => [...new Set(interfaceAddresses().map(({ ip }) => ip))]

/** IPVS does not take packets to loopback addresses. An IPv6 link-local address is of no use without its interface. */
const canServe = (address: string): boolean =>
  !isLoopback(address) && !(familyOf(address) === 'IPv6' && isLinkLocal(address))

/** The addresses are read only if the Node object has none. */
const machineOf = ({ families: served }: Started) => ({
  families: served,
  get addresses() {
    return reachableAddresses()
  },
})
