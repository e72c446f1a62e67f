import { setImmediate } from 'node:timers/promises'
import type { Family } from '@kpng/api'
import {
  asStep,
  type BackendFeatures,
  type FrontendAddress,
  type HeldFrontend,
  type Observations,
  type SyncStep,
} from '@kpng/client'
import {
  backendOf,
  type DataPlane,
  FrontendTable,
  type SteppedBackend,
  type Wanted,
  type Written,
} from '@kpng/dataplane'
import { linuxHost, loadLibc } from '@kpng/linux'
import {
  type Around,
  type Elements,
  type Found,
  familyOfTable,
  operationCount,
  removeTables,
  setPath,
  type TableFamily,
  Tables,
  type Transaction,
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
export function nftBackend(options: NftOptions = {}): SteppedBackend {
  const settings = settingsOf(options)
  const { log, driftCheckIntervalMs, deleteStaleFlows, leftovers } = settings
  const frontends = new FrontendTable(settings.dataplane, log)
  const plane = new NftDataPlane(settings, frontends, options.tableName)
  return backendOf(plane, { frontends, host: linuxHost, log, driftCheckIntervalMs, deleteStaleFlows, leftovers })
}

/** What a sync writes. */
export type Plan =
  | { readonly kind: 'change'; readonly transaction: Transaction }
  /** Into tables that are new and empty: in several transactions of whole frontends. */
  | { readonly kind: 'load'; readonly found: Found; readonly parts: Iterable<Transaction> }
  | { readonly kind: 'compare'; readonly found: Found; readonly wanted: Elements }

/** One table per family: a change of Services is a few elements. */
export class NftDataPlane implements DataPlane<Found, Plan> {
  readonly name = 'nftables'
  readonly needs = { rights: ['CAP_NET_ADMIN'], programs: [] }
  readonly lockName: string
  readonly observations: Observations
  readonly #settings: Settings
  readonly #frontends: FrontendTable
  readonly #cleanupName: string | undefined
  readonly #state: ElementState
  readonly #affinity = new Affinity()
  #tables: Tables | undefined
  #clients: ClientRelease | undefined
  /** Families in which clients may be remembered with an endpoint that the last write took away. */
  #toRelease: readonly TableFamily[] = []
  #releaseFailed = false

  /** @param cleanupName the tables that `remove` removes; undefined: all tables of kpng */
  constructor(settings: Settings, frontends: FrontendTable, cleanupName: string | undefined) {
    this.#settings = settings
    this.#frontends = frontends
    this.#cleanupName = cleanupName
    this.lockName = `nft table ${settings.tableName}`
    this.#state = new ElementState(settings)
    const { counters, log } = settings
    const counts = new ConnectionCounts({ frontends: () => frontends.all(), read: () => this.#readPackets(), log })
    this.observations = { listener: {}, ...(counters ? { connections: counts.get } : {}) }
  }

  get families(): readonly Family[] {
    return (this.#tables?.families ?? []).map((each) => familyOfTable[each])
  }

  /** The tables are made now, while the source still reads its list. */
  async open(onNotice: () => void): Promise<void> {
    const { ipv6, log } = this.#settings
    const families = usableFamilies(ipv6, log)
    const ruleset = nftRuleset(this.#settings)
    const tables = await Tables.open({ libc: await loadLibc(), families, ruleset, log, onForeignChange: onNotice })
    this.#tables = tables
    this.#clients = new ClientRelease({
      tables,
      stale: (family, remembered, lost) => this.#affinity.stale(family, remembered, this.#state, lost),
      onFailure: (failed) => {
        this.#releaseFailed = true
        this.observations.listener.cleanupFailed?.(failed.map((each) => familyOfTable[each]))
      },
      log,
    })
  }

  read(): Promise<Found> {
    return this.#open.find()
  }

  async plan(wanted: Wanted<Found>): Promise<Plan> {
    if (!wanted.full) {
      const { frontends } = wanted.changed
      const sticky = frontends.filter(
        ({ before, after }) => before?.sessionAffinitySeconds ?? after?.sessionAffinitySeconds,
      )
      this.#toRelease = sticky.length > 0 ? this.#affinity.note(sticky) : []
      return { kind: 'change', transaction: this.#state.change(wanted.changed, this.#frontends) }
    }
    const found = await wanted.held
    this.#affinity.reset(this.#frontends)
    if (found.isNew) {
      this.#toRelease = []
      return { kind: 'load', found, parts: this.#state.load(this.#frontends) }
    }
    this.#toRelease = this.#familiesWithAffinity(found.known)
    return { kind: 'compare', found, wanted: this.#state.rebuild(this.#frontends, found.known) }
  }

  async write(plan: Plan, steps: SyncStep[] | undefined): Promise<Written | undefined> {
    const around = asSteps(steps)
    switch (plan.kind) {
      case 'change':
        await this.#open.commit(plan.transaction, around)
        return undefined
      case 'load':
        await this.#open.makeMissing(plan.found, around)
        await this.#load(plan.parts, around)
        return { repaired: [...this.#frontends.all()].map(({ service }) => service) }
      case 'compare': {
        const written = await this.#open.bring(plan.found, plan.wanted, around)
        this.#settings.log.detail(2, 'The tables were compared with the view', { written: operationCount(written) })
        return { repaired: repairedServices(written, this.#frontends.all()) }
      }
    }
  }

  /** The kernel works on one part while the next one is worked out. */
  async #load(parts: Iterable<Transaction>, around: Around | undefined): Promise<void> {
    let writing = Promise.resolve()
    for (const part of parts) {
      await writing
      writing = this.#open.commit(part, around)
      // If it fails, the next `await` says so; until then, nobody waits for it.
      writing.catch(() => {})
      // The part is on its way to the kernel after this.
      await setImmediate()
    }
    await writing
  }

  /** Clients of endpoints that are gone choose again. */
  release(): Promise<void> | undefined {
    if (this.#releaseFailed) this.#clients?.retry()
    this.#releaseFailed = false
    if (this.#toRelease.length > 0) return this.#clients?.release(this.#toRelease, this.#affinity.takeLost())
    return undefined
  }

  drift(): string | undefined {
    return this.#open.drift()
  }

  async remove(): Promise<void> {
    await removeTables((name) => isOurTable(name, this.#cleanupName))
  }

  /** The rules stay in the kernel and keep working. */
  async close(): Promise<void> {
    await this.#clients?.close()
    this.#tables?.close()
    this.#clients = undefined
    this.#tables = undefined
  }

  hasRules(): Promise<boolean> {
    return this.#open.areFilled(names.clusterIps)
  }

  features(): BackendFeatures {
    return {
      name: 'nftables',
      kinds: ['clusterIP', 'externalIP', 'loadBalancerIP', 'nodePort'],
      protocols: ['tcp', 'udp', 'sctp'],
      families: this.families,
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
    return readHeld(this.#open, frontend)
  }

  /** The skeleton asks for nothing before `open`. */
  get #open(): Tables {
    return this.#tables as Tables
  }

  /** Families with remembered clients, including those of Services that no longer have session affinity. */
  #familiesWithAffinity(known: Elements): readonly TableFamily[] {
    const { families } = this.#open
    if (this.#affinity.isUsed) return families
    const sets = [names.sticky, names.stickyNodePorts]
    return families.filter((family) => sets.some((name) => (known.get(setPath(family, name))?.size ?? 0) > 0))
  }

  async #readPackets() {
    const kernel = this.#open
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
}

/** Each transaction is a step of a traced sync. */
const asSteps = (steps: SyncStep[] | undefined): Around | undefined =>
  steps && ((operations, write) => asStep(steps, 'transaction', { 'kpng.operations': operations }, write))
