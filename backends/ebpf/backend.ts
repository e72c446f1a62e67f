import { KpngError, messageOf } from '@kpng/api'
import { ConnectionCounts, nftBackend } from '@kpng/backend-nft'
import type {
  BackendFeatures,
  Changes,
  FrontendAddress,
  HeldFrontend,
  NodeView,
  Observations,
  Runner,
  ServicePortConnections,
  SyncStep,
} from '@kpng/client'
import { type FrontendBackend, type FrontendChanges, type FrontendTable, frontendId } from '@kpng/dataplane'
import { interfaceAddresses } from '@kpng/linux'
import { heldByBoth } from './held.js'
import { Kernel, removePins } from './kernel/kernel.js'
import { type EbpfOptions, type EbpfSettings, ebpfSettings } from './options.js'
import { type Entry, entryOf, keyOf, nodeAddressEntries } from './tables/entry.js'
import type { EntryChange } from './tables/tables.js'

/** Serves sockets of this node with eBPF when they connect, and everything else with nftables underneath. */
export function ebpfBackend(options: EbpfOptions = {}): FrontendBackend {
  return new EbpfBackend(options)
}

/** How many frontends are compared with the maps at each check for drift. */
const comparedAtOnce = 200

/**
 * States: *unknown*, until a full sync has read the maps, and again after a failure; *in step*, so that only changes are written; *syncing*
 * in between. The nftables backend has its own.
 */
class EbpfBackend implements FrontendBackend {
  readonly observations: Observations
  readonly #nft: FrontendBackend
  readonly #settings: EbpfSettings
  readonly #cleanupName: string | undefined
  #changed: FrontendChanges | undefined
  #onTold = () => {}
  #kernel: Kernel | undefined
  #nodeAddresses = ''
  #leftOut = ''
  #inStep = false
  #syncing = false
  #driftTimer: NodeJS.Timeout | undefined

  constructor(options: EbpfOptions) {
    this.#settings = ebpfSettings(options)
    this.#cleanupName = options.tableName === undefined ? undefined : this.#settings.pinName
    const onFrontends = (changes: FrontendChanges) => {
      this.#changed = changes
      this.#onTold()
    }
    const nft = nftBackend({ ...options, onFrontends })
    this.#nft = nft
    this.observations = this.#observe(nft)
  }

  get frontends(): FrontendTable {
    return this.#nft.frontends
  }

  async setup(runner: Runner): Promise<void> {
    await this.#nft.setup(runner)
    this.#kernel = await Kernel.open(this.#settings)
    this.#watchDrift(this.#kernel, runner)
  }

  async sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void> {
    const kernel = this.#open()
    const isFull = changes.full || !this.#inStep
    this.#inStep = false
    this.#syncing = true
    this.#changed = undefined
    try {
      const told = new Promise<void>((resolve) => {
        this.#onTold = resolve
      })
      const nft = this.#nft.sync(view, changes, steps)
      // It says what changed before it writes.
      await Promise.race([told, nft.catch(() => {})])
      const [sockets, packets] = await Promise.allSettled([this.#syncSockets(kernel, isFull, steps), nft])
      for (const result of [packets, sockets]) if (result.status === 'rejected') throw result.reason
      this.#inStep = true
    } finally {
      this.#syncing = false
    }
  }

  /** Maps and programs stay in the kernel and keep working. */
  async close(): Promise<void> {
    clearInterval(this.#driftTimer)
    const kernel = this.#kernel
    this.#kernel = undefined
    this.#inStep = false
    await kernel?.close()
    await this.#nft.close()
  }

  async cleanup(): Promise<void> {
    await this.close()
    removePins(this.#settings.bpffs, this.#cleanupName)
    await this.#nft.cleanup()
  }

  async hasRules(): Promise<boolean> {
    return (await this.#nft.hasRules?.()) ?? false
  }

  features(): BackendFeatures {
    const missing = [...(this.#kernel?.attachment.missing.keys() ?? [])]
    return {
      ...(this.#nft.features?.() as BackendFeatures),
      name: `eBPF${missing.length === 0 ? '' : ` (without ${missing.join(', ')})`} and nftables`,
      localhostNodePorts: this.#settings.localhostNodePorts,
      connectsSockets: true,
    }
  }

  async held(address: FrontendAddress): Promise<HeldFrontend | undefined> {
    const kernel = this.#open()
    const nft = await this.#nft.held?.(address)
    return heldByBoth(kernel, address, this.frontends.get(frontendId(address)), nft)
  }

  #open(): Kernel {
    if (this.#kernel) return this.#kernel
    throw new KpngError('usage', 'The eBPF backend was not set up. Call setup() first.')
  }

  async #syncSockets(kernel: Kernel, isFull: boolean, steps: SyncStep[] | undefined): Promise<void> {
    const startedAtMs = Date.now()
    const changed = this.#changed
    // The nftables backend failed before it knew.
    if (!changed) return
    const written = isFull ? await this.#load(kernel) : await this.#change(kernel, changed)
    this.#reportLeftOut(kernel)
    steps?.push({ name: 'ebpf', startedAtMs, endedAtMs: Date.now(), attributes: { 'kpng.frontends': written } })
  }

  async #load(kernel: Kernel): Promise<number> {
    const wanted = new Map<string, Entry>()
    for (const frontend of this.frontends.all()) {
      const entry = entryOf(frontend)
      if (entry) wanted.set(entry.key, entry)
    }
    const written = await kernel.tables.load(wanted)
    this.#nodeAddresses = ''
    await this.#setNodeAddresses(kernel)
    kernel.attach()
    this.#settings.log.detail(2, 'The eBPF maps were compared with the view', { frontends: wanted.size, written })
    return written
  }

  async #change(kernel: Kernel, { frontends, nodeBefore }: FrontendChanges): Promise<number> {
    const changes: EntryChange[] = []
    for (const { before, after } of frontends) {
      const either = after ?? before
      if (either?.protocol === 'tcp') changes.push([keyOf(either), after && entryOf(after)])
    }
    await kernel.tables.change(changes)
    if (nodeBefore) await this.#setNodeAddresses(kernel)
    return changes.length
  }

  /** Interfaces come and go, and no event says so: this is called at each check for drift. */
  async #setNodeAddresses(kernel: Kernel): Promise<void> {
    const wanted = nodeAddressEntries(this.frontends.node, interfaceAddresses(), this.#settings.localhostNodePorts)
    const text = [...wanted].join()
    if (text === this.#nodeAddresses) return
    await kernel.tables.setNodeAddresses(wanted)
    this.#nodeAddresses = text
  }

  /** Once, and again if it gets worse or better. */
  #reportLeftOut({ tables }: Kernel): void {
    const leftOut = [...tables.leftOut].map(([map, frontends]) => `${frontends} by ${map}`).join(', ')
    if (leftOut === this.#leftOut) return
    this.#leftOut = leftOut
    const { log, maxEndpoints } = this.#settings
    if (leftOut === '') log.info('The eBPF maps have room for everything again')
    else {
      log.warn('The eBPF maps are full; nftables serves what does not fit. Raise --ebpf-max-endpoints.', {
        leftOut,
        maxEndpoints,
      })
    }
  }

  #watchDrift(kernel: Kernel, runner: Runner): void {
    const { driftCheckIntervalMs, log } = this.#settings
    if (driftCheckIntervalMs <= 0) return
    const check = async () => {
      if (this.#syncing || !this.#inStep) return
      try {
        const reason = kernel.drift(comparedAtOnce)
        if (reason !== undefined) runner.requestFullSync(reason)
        else await this.#setNodeAddresses(kernel)
      } catch (error) {
        log.warn('Cannot check whether other programs changed the eBPF maps of kpng; trying again', {
          error: messageOf(error),
        })
      }
    }
    this.#driftTimer = setInterval(() => void check(), driftCheckIntervalMs).unref()
  }

  /** The nftables backend counts what comes to it, the programs count the rest. */
  #observe(nft: FrontendBackend): Observations {
    const own = nft.observations as Observations
    const sockets = new ConnectionCounts({
      frontends: () => this.frontends.all(),
      read: async () => {
        const { tables } = this.#open()
        return (frontend) => (frontend.protocol === 'tcp' ? tables.connections(keyOf(frontend)) : undefined)
      },
      log: this.#settings.log,
    })
    const connections = async () => sumOf(await sockets.get(), (await own.connections?.()) ?? [])
    return {
      get listener() {
        return own.listener
      },
      set listener(listener) {
        own.listener = listener
      },
      ...(this.#settings.counters ? { connections } : {}),
    }
  }
}

/** Adds up what two data planes counted for the same Service ports. */
function sumOf(...parts: readonly (readonly ServicePortConnections[])[]): ServicePortConnections[] {
  const sums = new Map<string, ServicePortConnections>()
  for (const part of parts.flat()) {
    const name = `${part.namespace}/${part.service}:${part.port}`
    sums.set(name, { ...part, connections: part.connections + (sums.get(name)?.connections ?? 0) })
  }
  return [...sums.values()]
}
