import { networkInterfaces } from 'node:os'
import { KpngError, messageOf } from '@kpng/api'
import type { Backend, Changes, NodeView, Runner, SyncStep } from '@kpng/client'
import type { Family } from './address.js'
import { Affinity, affinityPath } from './affinity.js'
import { ConnectionCounts } from './connection-counts.js'
import { ConnectionTotals, type ServicePortConnections } from './connection-totals.js'
import { DesiredState } from './desired-state.js'
import type { Elements } from './element.js'
import type { NftHooks } from './hooks.js'
import { Kernel } from './kernel.js'
import { splitSetPath } from './names.js'
import { deleteUdpFlows } from './netlink/conntrack.js'
import { NftCommand } from './nft-command.js'
import { type NodeContext, nodeContext } from './node-context.js'
import { type NftOptions, type Settings, settingsOf } from './options.js'
import { allUdpLists, deleteFlowsByCommand, type ListChange, staleness, udpChanges } from './stale-flows.js'
import { asStep } from './steps.js'
import { removeTables } from './tables.js'
import { difference, isEmpty, operationCount, type Transaction } from './transaction.js'

/** Without a socket that listens, looking for drift runs a command; then it is done so many times less often. */
const costlyDriftFactor = 30

/** Clients may be given an endpoint in the moment in which it goes; so often is looked for them afterwards. */
const releaseAttempts = 3

/** Serves one node's view with nftables. */
export function nftBackend(options: NftOptions = {}): Backend & NftHooks {
  return new NftBackend(settingsOf(options))
}

/**
 * States: *unknown*, until a full sync has read or made the tables, and again after a failure; *in step* with the kernel, when a
 * change costs what changed; *syncing* in between.
 */
class NftBackend implements Backend, NftHooks {
  onStaleFlows: NftHooks['onStaleFlows'] = undefined
  onCleanupFailure: NftHooks['onCleanupFailure'] = undefined
  readonly connectionCounts: NftHooks['connectionCounts']
  readonly #settings: Settings
  readonly #state: DesiredState
  readonly #affinity = new Affinity()
  #kernel: Kernel | undefined
  #inStep = false
  #syncing = false
  #driftTimer: NodeJS.Timeout | undefined
  /** Of the last sync that succeeded. */
  #services: NodeView['services'] | undefined
  readonly #totals = new ConnectionTotals()

  constructor(settings: Settings) {
    this.#settings = settings
    this.#state = new DesiredState(settings.log)
    this.connectionCounts = settings.counters
      ? new ConnectionCounts(() => this.#connections(), settings.log).get
      : undefined
  }

  async setup(runner: Runner): Promise<void> {
    this.#kernel = await Kernel.open(this.#settings)
    this.#watchDrift(this.#kernel, runner)
  }

  async sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void> {
    const kernel = this.#kernel
    if (!kernel) throw new KpngError('usage', 'The nft backend was not set up. Call setup() first.')
    const wasInStep = this.#inStep && !changes.full
    this.#inStep = false
    this.#syncing = true
    try {
      const context = this.#context(view, kernel)
      const transaction = wasInStep ? this.#state.change(view, changes, context) : undefined
      if (transaction) await this.#syncChange(kernel, context, transaction, steps)
      else await this.#syncAll(kernel, context, view, steps)
      kernel.listen()
      this.#services = view.services
      this.#inStep = true
    } finally {
      this.#syncing = false
    }
  }

  async cleanup(): Promise<void> {
    clearInterval(this.#driftTimer)
    this.#kernel?.close()
    this.#kernel = undefined
    this.#inStep = false
    await removeTables(new NftCommand(this.#settings.nftCommand))
  }

  #context(view: NodeView, { families, affinityFamilies }: Kernel): NodeContext {
    return nodeContext(view.node, { families, affinityFamilies, hostAddresses }, this.#settings)
  }

  async #syncChange(
    kernel: Kernel,
    context: NodeContext,
    transaction: Transaction,
    steps: SyncStep[] | undefined,
  ): Promise<void> {
    if (isEmpty(transaction)) return
    await this.#commit(kernel, transaction, this.#affinity.touchedBy(transaction), steps)
    await this.#deleteStaleFlows(kernel, context, udpChanges(transaction, this.#state), steps)
  }

  async #syncAll(kernel: Kernel, context: NodeContext, view: NodeView, steps: SyncStep[] | undefined): Promise<void> {
    const { known, wanted } = await kernel.adopt((found) => this.#state.rebuild(view, context, found), steps)
    const transaction = difference(known, wanted)
    this.#affinity.reset(known)
    const remembered = this.#affinity.isUsed ? kernel.affinityFamilies : []
    await this.#commit(kernel, transaction, remembered, steps)
    const flows = [...udpChanges(transaction, this.#state), ...allUdpLists(this.#state.lists())]
    await this.#deleteStaleFlows(kernel, context, flows, steps)
    this.#settings.log.detail(2, 'The tables were compared with the view', { written: operationCount(transaction) })
  }

  /** Commits, and releases the clients of endpoints that go. */
  async #commit(
    kernel: Kernel,
    transaction: Transaction,
    remembering: readonly Family[],
    steps: SyncStep[] | undefined,
  ): Promise<void> {
    this.#affinity.note(transaction)
    const released = await this.#staleClients(kernel, remembering)
    try {
      const remove: Elements = new Map([...transaction.remove, ...released])
      await kernel.commit({ remove, add: transaction.add }, steps)
    } catch (error) {
      // A client that expired by itself cannot be released any more, and fails the whole transaction.
      if (released.size === 0) throw error
      await kernel.commit(transaction, steps)
    }
    for (let attempt = 1; remembering.length > 0 && attempt <= releaseAttempts; attempt++) {
      const late = await this.#staleClients(kernel, remembering)
      if (late.size === 0) break
      await kernel.commit({ remove: late, add: new Map() }, steps).catch(() => {
        if (attempt === releaseAttempts)
          this.onCleanupFailure?.([...late.keys()].map((path) => splitSetPath(path).family))
      })
    }
  }

  async #staleClients(kernel: Kernel, families: readonly Family[]): Promise<Elements> {
    const stale: Elements = new Map()
    for (const family of families) {
      const path = affinityPath(family)
      const clients = this.#affinity.stale(family, await kernel.read(path), this.#state)
      if (clients.size > 0) stale.set(path, clients)
    }
    return stale
  }

  /** A flow that stays where it should not is worth a warning, not a failed sync. */
  async #deleteStaleFlows(
    kernel: Kernel,
    context: NodeContext,
    changes: readonly ListChange[],
    steps: SyncStep[] | undefined,
  ): Promise<void> {
    const { deleteStaleFlows, conntrackCommand, log } = this.#settings
    if (!deleteStaleFlows || changes.length === 0) return
    const isStale = staleness(changes, this.#state, context.nodeAddresses)
    const attributes = { 'kpng.deleted': 0 }
    const deleteAll = async () => {
      for (const family of new Set(changes.map((change) => change.family))) {
        const startedMs = performance.now()
        const deleted = kernel.libc
          ? await deleteUdpFlows(kernel.libc, family, isStale)
          : await deleteFlowsByCommand(
              conntrackCommand,
              changes.filter((change) => change.family === family),
            )
        attributes['kpng.deleted'] += deleted
        this.onStaleFlows?.(family, performance.now() - startedMs, deleted)
        if (deleted > 0) log.detail(2, 'Deleted stale UDP flows', { family, flows: deleted })
      }
    }
    try {
      await asStep(steps, 'conntrack', attributes, deleteAll)
    } catch (error) {
      log.warn('Stale UDP flows could not be deleted; they end by themselves when their clients pause', {
        error: messageOf(error),
      })
    }
  }

  async #connections(): Promise<readonly ServicePortConnections[]> {
    if (!this.#kernel || !this.#services) return []
    const packets = await this.#kernel.packets()
    return this.#totals.update(packets, this.#services, (path, key) => this.#state.ownerOf(path, key))
  }

  #watchDrift(kernel: Kernel, runner: Runner): void {
    const { driftCheckIntervalMs, log } = this.#settings
    if (driftCheckIntervalMs <= 0) return
    let checking = false
    const check = async () => {
      if (checking || this.#syncing || !this.#inStep) return
      checking = true
      try {
        const reason = await kernel.drift()
        if (reason !== undefined && !this.#syncing) runner.requestFullSync(reason)
      } catch (error) {
        log.warn('Changes by others could not be looked for', { error: messageOf(error) })
      } finally {
        checking = false
      }
    }
    const interval = driftCheckIntervalMs * (kernel.isDriftCheap ? 1 : costlyDriftFactor)
    this.#driftTimer = setInterval(check, interval).unref()
  }
}

const hostAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.filter(({ internal, scopeid }) => !internal && !scopeid).map(({ address }) => address),
  )
