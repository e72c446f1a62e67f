import { type Family, families, type Log } from '@kpng/api'
import { loadLibc } from '@kpng/linux'
import { difference, type Elements, familyOfTable, removeTables, Tables, usableFamilies } from '@kpng/linux/nftables'
import type { Capture, NodeAddresses, Steering } from './capture.js'
import { elementsIn, nodeElements, portalElements, portalRuleset } from './nft-ruleset.js'
import { defaultTable, type PortalOptions, portalPlaces } from './portals.js'
import { staleFlowRemoval } from './stale-flows.js'

export interface NftOptions extends PortalOptions {
  readonly log: Log
}

/** Portals by nftables: our own table for each family, written in transactions. Foreign tables are never touched. */
export const nftCapture = (options: NftOptions): Capture => new NftCapture(options)

class NftCapture implements Capture {
  readonly name = 'nft'
  readonly listensOnPortals = false
  readonly lockName: string
  readonly #table: string
  readonly #isNamed: boolean
  readonly #log: Log
  readonly #places: ReturnType<typeof portalPlaces>
  readonly #removeStaleFlows: ReturnType<typeof staleFlowRemoval>
  readonly hosts: Capture['hosts']
  readonly allocate: Capture['allocate']
  readonly release: Capture['release']
  #tables: Tables | undefined
  /** What of the node is in the tables. */
  #writtenNode = ''

  constructor({ log, ...portals }: NftOptions) {
    this.#table = portals.table ?? defaultTable
    this.lockName = `nft table ${this.#table}`
    this.#isNamed = portals.table !== undefined
    this.#log = log
    this.#places = portalPlaces(portals)
    this.#removeStaleFlows = staleFlowRemoval({ log })
    this.hosts = this.#places.hosts
    this.allocate = this.#places.allocate
    this.release = this.#places.release
  }

  get families(): readonly Family[] {
    return this.#tables?.families.map((family) => familyOfTable[family]) ?? families
  }

  async setup(onNotice: () => void): Promise<void> {
    this.#tables = await Tables.open({
      libc: await loadLibc(),
      families: usableFamilies('auto', this.#log),
      ruleset: this.#ruleset(nowhere),
      log: this.#log,
      onForeignChange: onNotice,
    })
  }

  async steer(steering: Steering): Promise<void> {
    const { extent, node, added, removed } = steering
    const tables = this.#tables as Tables
    const reason = extent === 'check' ? tables.drift() : undefined
    if (reason !== undefined) {
      this.#log.warn('The tables of the portals are written again', { table: this.#table, reason })
    }
    if (extent === 'full' || reason !== undefined || JSON.stringify(node) !== this.#writtenNode) {
      await this.#writeAll(tables, steering)
    } else {
      const portals = (some: Steering['open']) => elementsIn(portalElements(some), tables.families)
      await tables.commit(difference(portals(removed), portals(added)))
    }
    await this.#removeStaleFlows(steering)
  }

  async #writeAll(tables: Tables, { open, node }: Steering): Promise<void> {
    tables.ruleset = this.#ruleset(node)
    const wanted: Elements = new Map([...nodeElements(node), ...portalElements(open)])
    await tables.bring(await tables.find(), elementsIn(wanted, tables.families))
    this.#writtenNode = JSON.stringify(node)
  }

  async missing(): Promise<string | undefined> {
    return this.#tables?.drift()
  }

  async cleanup(): Promise<void> {
    this.#tables?.close()
    this.#tables = undefined
    await removeTables((name) =>
      this.#isNamed ? name === this.#table : name === defaultTable || name.startsWith(`${defaultTable}-`),
    )
  }

  #ruleset(node: NodeAddresses) {
    return portalRuleset(this.#table, {
      ip: this.#places.boundIps('IPv4', node),
      ip6: this.#places.boundIps('IPv6', node),
    })
  }
}

/** The addresses of the node come with the first view. */
const nowhere: NodeAddresses = {
  insideCidrs: [],
  nodeIps: { IPv4: undefined, IPv6: undefined },
  nodePortCidrs: { IPv4: [], IPv6: [] },
  nodePortHosts: { IPv4: [], IPv6: [] },
  nodePortIps: { IPv4: [], IPv6: [] },
}
