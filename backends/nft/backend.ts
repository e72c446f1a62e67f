import { KpngError, messageOf } from '@kpng/api'
import type { Backend, Changes, NodeView, Runner, SyncStep } from '@kpng/client'
import { reachableAddresses } from '@kpng/linux'
import type { Family } from './address.js'
import { Affinity } from './affinity.js'
import { ClientRelease } from './client-release.js'
import { ConnectionCounts } from './connection-counts.js'
import { ConnectionTotals, type ServicePortConnections } from './connection-totals.js'
import { DesiredState } from './desired-state.js'
import { FlowRemoval } from './flow-removal.js'
import { briefly } from './follow-up.js'
import type { NftHooks } from './hooks.js'
import { Kernel } from './kernel.js'
import { NftCommand } from './nft-command.js'
import { type NodeContext, nodeContext } from './node-context.js'
import { type NftOptions, type Settings, settingsOf } from './options.js'
import { allUdpLists, type ListChange, udpChanges } from './stale-flows.js'
import { asStep, type StepAttributes } from './steps.js'
import { removeTables } from './tables.js'
import { difference, isEmpty, operationCount, type Transaction } from './transaction.js'

/** Without a socket that listens, looking for drift runs a command; then it is done so many times less often. */
const costlyDriftFactor = 30

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
  #clients: ClientRelease | undefined
  #flows: FlowRemoval | undefined
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
    const kernel = await Kernel.open(this.#settings)
    this.#kernel = kernel
    this.#clients = new ClientRelease({
      kernel,
      stale: (family, remembered, lost) => this.#affinity.stale(family, remembered, this.#state, lost),
      onFailure: (families) => this.onCleanupFailure?.(families),
      log: this.#settings.log,
    })
    this.#flows = new FlowRemoval({
      ...{ libc: kernel.libc, state: this.#state, settings: this.#settings },
      onRemoved: (family, durationMs, deleted) => this.onStaleFlows?.(family, durationMs, deleted),
    })
    this.#watchDrift(kernel, runner)
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
      this.#clients?.retry()
      this.#services = view.services
      this.#inStep = true
    } finally {
      this.#syncing = false
    }
  }

  /** The rules stay and go on serving; what this process holds open to change and to watch them goes. */
  async close(): Promise<void> {
    clearInterval(this.#driftTimer)
    await this.#clients?.close()
    this.#kernel?.close()
    this.#kernel = undefined
    this.#inStep = false
  }

  async cleanup(): Promise<void> {
    await this.close()
    await removeTables(new NftCommand(this.#settings.nftCommand))
  }

  #context(view: NodeView, { families, affinityFamilies }: Kernel): NodeContext {
    return nodeContext(
      view.node,
      { families, affinityFamilies, hostAddresses: () => reachableAddresses() },
      this.#settings,
    )
  }

  async #syncChange(
    kernel: Kernel,
    context: NodeContext,
    transaction: Transaction,
    steps: SyncStep[] | undefined,
  ): Promise<void> {
    if (isEmpty(transaction)) return
    const remembering = this.#affinity.touchedBy(transaction)
    this.#affinity.note(transaction, this.#state)
    await kernel.commit(transaction, steps)
    await this.#follow(context, remembering, udpChanges(transaction, this.#state), steps)
  }

  async #syncAll(kernel: Kernel, context: NodeContext, view: NodeView, steps: SyncStep[] | undefined): Promise<void> {
    const { known, wanted } = await kernel.adopt((found) => this.#state.rebuild(view, context, found), steps)
    const transaction = difference(known, wanted)
    this.#affinity.reset(known)
    const remembering = this.#affinity.isUsed ? kernel.affinityFamilies : []
    this.#affinity.note(transaction, this.#state)
    await kernel.commit(transaction, steps)
    await kernel.removeUnusedChains(wanted).catch((error) => this.#chainsStay(error))
    const flows = [...udpChanges(transaction, this.#state), ...allUdpLists(this.#state.lists())]
    await this.#follow(context, remembering, flows, steps)
    this.#settings.log.detail(2, 'The tables were compared with the view', { written: operationCount(transaction) })
  }

  /** They cost nothing but a line in a listing, and the next full sync tries again. */
  #chainsStay(error: unknown): void {
    this.#settings.log.detail(1, 'Chains of affinity times that no service has could not be removed', {
      error: messageOf(error),
    })
  }

  /** What must be done once nobody is given the endpoints any more that went. */
  async #follow(
    context: NodeContext,
    remembering: readonly Family[],
    changes: readonly ListChange[],
    steps: SyncStep[] | undefined,
  ): Promise<void> {
    const release = this.#clients?.release(remembering, this.#affinity.takeLost())
    if (this.#settings.deleteStaleFlows && changes.length > 0) {
      const attributes: StepAttributes = {}
      await asStep(steps, 'conntrack', attributes, async () => {
        const deleted = this.#flows && (await briefly(this.#flows.remove(changes, context.nodeAddresses)))
        if (deleted === undefined) attributes['kpng.continues'] = true
        else attributes['kpng.deleted'] = deleted
      })
    }
    if (release && remembering.length > 0) await briefly(release)
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
        // A look at the tables while a sync changes them shows nothing; what the kernel told is true in any case.
        if (reason !== undefined && (kernel.isDriftCheap || !this.#syncing)) runner.requestFullSync(reason)
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
