import { ConnectionCounts, NftDataPlane, type NftPlan, nftSettings } from '@kpng/backend-nft'
import type {
  BackendFeatures,
  FrontendAddress,
  HeldFrontend,
  Observations,
  ServicePortConnections,
  SyncStep,
} from '@kpng/client'
import {
  backendOf,
  type DataPlane,
  type FrontendChanges,
  FrontendTable,
  frontendId,
  type SteppedBackend,
  type Wanted,
  type Written,
} from '@kpng/dataplane'
import { interfaceAddresses, linuxHost } from '@kpng/linux'
import type { Found } from '@kpng/linux/nftables'
import { heldByBoth } from './held.js'
import { Kernel } from './kernel/kernel.js'
import { checkNothingAttached, removePins } from './kernel/removal.js'
import { type EbpfOptions, type EbpfSettings, ebpfSettings } from './options.js'
import { type Entry, entryOf, keyOf, nodeAddressEntries } from './tables/entry.js'
import type { EntryChange } from './tables/tables.js'

/** Serves sockets of this node with eBPF when they connect, and everything else with nftables underneath. */
export function ebpfBackend(options: EbpfOptions = {}): SteppedBackend {
  const nft = nftSettings(options)
  const { log, driftCheckIntervalMs, deleteStaleFlows, leftovers } = nft
  const frontends = new FrontendTable(nft.dataplane, log)
  const plane = new EbpfDataPlane(options, frontends, new NftDataPlane(nft, frontends, options.tableName))
  return backendOf(plane, { frontends, host: linuxHost, log, driftCheckIntervalMs, deleteStaleFlows, leftovers })
}

/** How many frontends are compared with the maps at each check for drift. */
const comparedAtOnce = 200

/** What a sync writes: for packets, and for sockets. */
interface Plan {
  readonly packets: NftPlan
  /** Undefined: everything is compared with the maps. */
  readonly sockets: FrontendChanges | undefined
}

/** Maps that programs read when a socket connects, beside the data plane of nftables, which serves what has no place in them. */
class EbpfDataPlane implements DataPlane<Found, Plan> {
  readonly name = 'eBPF'
  readonly needs: NftDataPlane['needs']
  readonly lockName: string
  readonly observations: Observations
  readonly #nft: NftDataPlane
  readonly #frontends: FrontendTable
  readonly #settings: EbpfSettings
  readonly #givenBpffs: string | undefined
  readonly #cleanupName: string | undefined
  #kernel: Kernel | undefined
  #nodeAddresses = ''
  #leftOut = ''

  constructor(options: EbpfOptions, frontends: FrontendTable, nft: NftDataPlane) {
    this.#settings = ebpfSettings(options)
    this.#givenBpffs = options.bpffs
    this.#cleanupName = options.tableName === undefined ? undefined : this.#settings.pinName
    this.#frontends = frontends
    this.#nft = nft
    this.needs = nft.needs
    this.lockName = nft.lockName
    this.observations = this.#observe(nft)
  }

  get families() {
    return this.#nft.families
  }

  /** eBPF first: most of what a machine may lack is there, and a start that fails leaves no tables. */
  async open(onNotice: () => void): Promise<void> {
    const kernel = await Kernel.open(this.#settings)
    this.#kernel = kernel
    try {
      await this.#nft.open(onNotice)
    } catch (error) {
      kernel.discard()
      throw error
    }
  }

  read(): Promise<Found> {
    return this.#nft.read()
  }

  async plan(wanted: Wanted<Found>): Promise<Plan> {
    return { packets: await this.#nft.plan(wanted), sockets: wanted.full ? undefined : wanted.changed }
  }

  async write({ packets, sockets }: Plan, steps: SyncStep[] | undefined): Promise<Written | undefined> {
    const [bySockets, byPackets] = await Promise.allSettled([
      this.#writeSockets(this.#open, sockets, steps),
      this.#nft.write(packets, steps),
    ])
    if (byPackets.status === 'rejected') throw byPackets.reason
    if (bySockets.status === 'rejected') throw bySockets.reason
    return byPackets.value
  }

  release(): Promise<void> | undefined {
    return this.#nft.release()
  }

  /** Interfaces come and go, and no event says so. */
  drift(): string | undefined {
    const reason = this.#nft.drift() ?? this.#open.drift(comparedAtOnce)
    if (reason !== undefined) return reason
    return [...this.#wantedAddresses()].join() === this.#nodeAddresses
      ? undefined
      : "the addresses of this node's interfaces changed"
  }

  /** Maps and programs stay in the kernel and keep working. */
  async close(): Promise<void> {
    const kernel = this.#kernel
    this.#kernel = undefined
    await kernel?.close()
    await this.#nft.close()
  }

  async remove(): Promise<void> {
    const { log } = this.#settings
    const folders = await removePins({ bpffs: this.#givenBpffs, pinName: this.#cleanupName })
    if (folders.length > 0) log.info('Removed eBPF programs and maps', { folders: folders.join(', ') })
    await this.#nft.remove()
    if (this.#cleanupName === undefined) await checkNothingAttached(log)
  }

  hasRules(): Promise<boolean> {
    return this.#nft.hasRules()
  }

  features(): BackendFeatures {
    const missing = [...(this.#kernel?.attachment.missing.keys() ?? [])]
    return {
      ...this.#nft.features(),
      name: `eBPF${missing.length === 0 ? '' : ` (without ${missing.join(', ')})`} and nftables`,
      localhostNodePorts: this.#settings.localhostNodePorts,
      connectsSockets: true,
    }
  }

  async held(address: FrontendAddress): Promise<HeldFrontend | undefined> {
    const nft = await this.#nft.held(address)
    return heldByBoth(this.#open, address, this.#frontends.get(frontendId(address)), nft)
  }

  /** The skeleton asks for nothing before `open`. */
  get #open(): Kernel {
    return this.#kernel as Kernel
  }

  async #writeSockets(
    kernel: Kernel,
    changed: FrontendChanges | undefined,
    steps: SyncStep[] | undefined,
  ): Promise<void> {
    const startedAtMs = Date.now()
    const written = changed ? await this.#change(kernel, changed) : await this.#load(kernel)
    this.#reportLeftOut(kernel)
    steps?.push({ name: 'ebpf', startedAtMs, endedAtMs: Date.now(), attributes: { 'kpng.frontends': written } })
  }

  async #load(kernel: Kernel): Promise<number> {
    const wanted = new Map<string, Entry>()
    for (const frontend of this.#frontends.all()) {
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

  #wantedAddresses(): Map<string, number> {
    return nodeAddressEntries(this.#frontends.node, interfaceAddresses(), this.#settings.localhostNodePorts)
  }

  async #setNodeAddresses(kernel: Kernel): Promise<void> {
    const wanted = this.#wantedAddresses()
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

  /** The nftables backend counts what comes to it, the programs count the rest. */
  #observe({ observations: own }: NftDataPlane): Observations {
    const sockets = new ConnectionCounts({
      frontends: () => this.#frontends.all(),
      read: async () => {
        const { tables } = this.#open
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
