import { hostname } from 'node:os'
import { setImmediate } from 'node:timers/promises'
import { type Family, KpngError, messageOf } from '@kpng/api'
import {
  asStep,
  type BackendFeatures,
  type Changes,
  type FrontendAddress,
  type HeldFrontend,
  type NodeView,
  type Observations,
  type Runner,
  type StepAttributes,
  type SyncStep,
} from '@kpng/client'
import {
  allFlowChecks,
  briefly,
  type FlowCheck,
  type FrontendBackend,
  type FrontendChanges,
  FrontendTable,
  flowChecks,
  type Machine,
  StaleFlowRemoval,
} from '@kpng/dataplane'
import { deleteFlows, loadLibc, lockName, type NameLock, reachableAddresses } from '@kpng/linux'
import {
  type Around,
  difference,
  type Elements,
  familyOfTable,
  operationCount,
  removeTables,
  setPath,
  type TableFamily,
  Tables,
  tableFamily,
  usableFamilies,
} from '@kpng/linux/nftables'
import { Affinity } from './affinity.js'
import { ClientRelease } from './client-release.js'
import { ConnectionCounts } from './connection-counts.js'
import { ElementState } from './elements/element-state.js'
import { frontendKey } from './elements/frontend-elements.js'
import { readHeld } from './held.js'
import { type NftOptions, type Settings, settingsOf } from './options.js'
import { repairedServices } from './repaired.js'
import { isOurTable, names } from './rules/names.js'
import { nftRuleset } from './rules/skeleton.js'

/** Serves one node's view with nftables. */
export function nftBackend(options: NftOptions = {}): FrontendBackend {
  return new NftBackend(settingsOf(options), options.tableName)
}

/**
 * States: *unknown*, until a full sync has read or made the tables, and again after a failure; *in step* with the kernel, so that
 * only changes are written; *syncing* in between.
 */
class NftBackend implements FrontendBackend {
  readonly frontends: FrontendTable
  readonly observations: Observations
  readonly #settings: Settings
  readonly #cleanupName: string | undefined
  readonly #state: ElementState
  readonly #affinity = new Affinity()
  readonly #flows: StaleFlowRemoval
  #kernel: Tables | undefined
  #clients: ClientRelease | undefined
  #lock: NameLock | undefined
  #releaseFailed = false
  #inStep = false
  #hasSynced = false
  #syncing = false
  #driftTimer: NodeJS.Timeout | undefined

  constructor(settings: Settings, cleanupName: string | undefined) {
    const { log } = settings
    this.#settings = settings
    this.#cleanupName = cleanupName
    this.frontends = new FrontendTable(settings.dataplane, log)
    this.#state = new ElementState(settings)
    const counts = new ConnectionCounts({ frontends: () => this.frontends.all(), read: () => this.#readPackets(), log })
    this.observations = { listener: {}, ...(settings.counters ? { connections: counts.get } : {}) }
    this.#flows = new StaleFlowRemoval({
      ...{ table: this.frontends, deleteFlows, log },
      onRemoved: (...seen) => this.observations.listener.staleFlows?.(...seen),
    })
  }

  async setup(runner: Runner): Promise<void> {
    const { tableName, log } = this.#settings
    this.#lock = await lockName(`nft table ${tableName}`, `kpng (pid ${process.pid}) on ${hostname()}`)
    // The tables are made now, while the source still reads its list.
    const families = usableFamilies(this.#settings.ipv6, log)
    const kernel = await Tables.open({ libc: await loadLibc(), families, ruleset: nftRuleset(this.#settings), log })
    this.#kernel = kernel
    this.#clients = new ClientRelease({
      kernel,
      stale: (family, remembered, lost) => this.#affinity.stale(family, remembered, this.#state, lost),
      onFailure: (families) => {
        this.#releaseFailed = true
        this.observations.listener.cleanupFailed?.(families.map((each) => familyOfTable[each]))
      },
      log,
    })
    this.#watchDrift(kernel, runner)
  }

  async sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void> {
    const kernel = this.#open()
    const wasInStep = this.#inStep && !changes.full
    this.#inStep = false
    this.#syncing = true
    try {
      const changed = this.frontends.apply(view, changes, machineOf(this.#families))
      this.#settings.onFrontends?.(changed)
      if (wasInStep) await this.#syncChange(kernel, changed, steps)
      else await this.#syncAll(kernel, changes, steps)
      if (this.#releaseFailed) this.#clients?.retry()
      this.#releaseFailed = false
      this.#inStep = true
      this.#hasSynced = true
    } finally {
      this.#syncing = false
    }
  }

  /** The rules stay in the kernel and keep working. */
  async close(): Promise<void> {
    clearInterval(this.#driftTimer)
    await this.#clients?.close()
    await this.#flows.close()
    this.#kernel?.close()
    await this.#lock?.release()
    this.#kernel = undefined
    this.#lock = undefined
    this.#inStep = false
  }

  async cleanup(): Promise<void> {
    await this.close()
    await removeTables((name) => isOurTable(name, this.#cleanupName))
  }

  hasRules(): Promise<boolean> {
    return this.#open().areFilled(names.clusterIps)
  }

  features(): BackendFeatures {
    return {
      name: 'nftables',
      kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
      protocols: ['tcp', 'udp', 'sctp'],
      families: this.#families,
      sessionAffinity: true,
      sourceRanges: true,
      wholeAddresses: true,
      keepsSourceAddress: true,
      localhostNodePorts: false,
      counters: this.#settings.counters,
      directServerReturn: false,
    }
  }

  held(frontend: FrontendAddress): Promise<HeldFrontend | undefined> {
    return readHeld(this.#open(), frontend)
  }

  get #families(): readonly Family[] {
    return (this.#kernel?.families ?? []).map((each) => familyOfTable[each])
  }

  #open(): Tables {
    if (this.#kernel) return this.#kernel
    throw new KpngError('usage', 'The nft backend was not set up. Call setup() first.')
  }

  async #syncChange(kernel: Tables, changes: FrontendChanges, steps: SyncStep[] | undefined): Promise<void> {
    const transaction = this.#state.change(changes, this.frontends)
    const hasAffinity = ({ sessionAffinitySeconds }: { sessionAffinitySeconds?: number | undefined } = {}) =>
      sessionAffinitySeconds !== undefined
    const sticky = changes.frontends.filter(({ before, after }) => hasAffinity(before) || hasAffinity(after))
    const released = sticky.length > 0 ? this.#affinity.note(sticky) : []
    await kernel.commit(transaction, asSteps(steps))
    const udp = changes.frontends.filter(({ before, after }) => (after ?? before)?.protocol !== 'tcp')
    await this.#follow(released, udp.length > 0 ? flowChecks(udp) : [], steps)
  }

  async #syncAll(kernel: Tables, changes: Changes, steps: SyncStep[] | undefined): Promise<void> {
    const adopted = await kernel.adopt((found) => this.#state.rebuild(this.frontends, found), asSteps(steps))
    this.#affinity.reset(this.frontends)
    if (adopted) {
      const transaction = difference(adopted.known, adopted.wanted)
      await kernel.commit(transaction, asSteps(steps))
      if (this.#hasSynced) this.#tellRepaired(repairedServices(transaction, this.frontends.all()), changes)
      await kernel.removeUnusedChains(adopted.wanted).catch((error) => this.#logUnusedChains(error))
      this.#settings.log.detail(2, 'The tables were compared with the view', { written: operationCount(transaction) })
    } else {
      await this.#load(kernel, steps)
      if (this.#hasSynced)
        this.#tellRepaired(
          [...this.frontends.all()].map(({ service }) => service),
          changes,
        )
    }
    const released = adopted ? this.#familiesWithAffinity(kernel, adopted.known) : []
    await this.#follow(released, allFlowChecks(this.frontends), steps)
  }

  /** Services that were changed in the cluster at the same time are left out: what was written for them is that change. */
  #tellRepaired(services: readonly string[], changes: Changes): void {
    const repaired = [...new Set(services)].filter((service) => !changes.services.has(service))
    if (repaired.length > 0) this.observations.listener.repaired?.(repaired)
  }

  /** Fills new tables in several transactions of whole frontends. The kernel works on one while the next one is worked out. */
  async #load(kernel: Tables, steps: SyncStep[] | undefined): Promise<void> {
    let writing = Promise.resolve()
    for (const transaction of this.#state.load(this.frontends)) {
      await writing
      writing = kernel.commit(transaction, asSteps(steps))
      // If it fails, the next `await` says so; until then, nobody waits for it.
      writing.catch(() => {})
      // The transaction is on its way to the kernel after this.
      await setImmediate()
    }
    await writing
  }

  /** Families with remembered clients, including those of Services that no longer have session affinity. */
  #familiesWithAffinity({ families }: Tables, known: Elements): readonly TableFamily[] {
    if (this.#affinity.isUsed) return families
    const sets = [names.sticky, names.stickyNodePorts]
    return families.filter((family) => sets.some((name) => (known.get(setPath(family, name))?.size ?? 0) > 0))
  }

  /** Unused chains are harmless, and the next full sync tries again. */
  #logUnusedChains(error: unknown): void {
    this.#settings.log.detail(1, 'Cannot remove unused chains of session affinity; the next full sync tries again', {
      error: messageOf(error),
    })
  }

  /** What must be done when the rules no longer use the endpoints that are gone. */
  async #follow(released: readonly TableFamily[], checks: readonly FlowCheck[], steps?: SyncStep[]): Promise<void> {
    const release = released.length > 0 ? this.#clients?.release(released, this.#affinity.takeLost()) : undefined
    if (this.#settings.deleteStaleFlows && checks.length > 0) {
      const attributes: StepAttributes = {}
      await asStep(steps, 'conntrack', attributes, async () => {
        const deleted = await briefly(this.#flows.remove(checks))
        if (deleted === undefined) attributes['kpng.continues'] = true
        else attributes['kpng.deleted'] = deleted
      })
    }
    if (release) await briefly(release)
  }

  async #readPackets() {
    const kernel = this.#open()
    const read = new Map<string, ReadonlyMap<string, number>>()
    for (const family of kernel.families) {
      for (const name of [names.counted, names.countedNodePorts]) {
        read.set(`${family} ${name}`, await kernel.packetsBeside(setPath(family, name)))
      }
    }
    return (frontend: FrontendAddress) => {
      const name = frontend.kind === 'nodePort' ? names.countedNodePorts : names.counted
      return read.get(`${tableFamily[frontend.family]} ${name}`)?.get(frontendKey(frontend))
    }
  }

  #watchDrift(kernel: Tables, runner: Runner): void {
    const { driftCheckIntervalMs, log } = this.#settings
    if (driftCheckIntervalMs <= 0) return
    const check = () => {
      if (this.#syncing || !this.#inStep) return
      try {
        const reason = kernel.drift()
        if (reason !== undefined) runner.requestFullSync(reason)
      } catch (error) {
        log.warn('Cannot check whether other programs changed the tables of kpng; trying again', {
          error: messageOf(error),
        })
      }
    }
    this.#driftTimer = setInterval(check, driftCheckIntervalMs).unref()
  }
}

/** The addresses are read only if the Node object has none. */
const machineOf = (families: readonly Family[]): Machine => ({
  families,
  get addresses() {
    return reachableAddresses()
  },
})

/** Each transaction is a step of a traced sync. */
const asSteps = (steps: SyncStep[] | undefined): Around | undefined =>
  steps && ((operations, write) => asStep(steps, 'transaction', { 'kpng.operations': operations }, write))
