import { type Family, families, KpngError, type Log, messageOf } from '@kpng/api'
import type { Capture, OpenPortal, Steering } from './capture.js'
import {
  type Element,
  elementChanges,
  elementsOf,
  holds,
  nodeElements,
  readListing,
  skeleton,
  tableName,
} from './nft-ruleset.js'
import { defaultTable, type PortalOptions, portalPlaces } from './portals.js'
import { type RunProgram, runProgram } from './program.js'
import { staleFlowRemoval } from './stale-flows.js'

export interface NftOptions extends PortalOptions {
  readonly log: Log
  readonly run?: RunProgram
}

/** Portals by nftables: our own table for each family, written in transactions. Foreign tables are never touched. */
export const nftCapture = (options: NftOptions): Capture => new NftCapture(options)

class NftCapture implements Capture {
  readonly name = 'nft'
  readonly listensOnPortals = false
  families: readonly Family[] = families
  readonly #table: string
  readonly #isNamed: boolean
  readonly #log: Log
  readonly #run: RunProgram
  readonly #places: ReturnType<typeof portalPlaces>
  readonly #removeStaleFlows: ReturnType<typeof staleFlowRemoval>
  readonly hosts: Capture['hosts']
  readonly allocate: Capture['allocate']
  readonly release: Capture['release']
  /** What of the node is in the tables. */
  #writtenNode = ''
  /** The tables as listed after they were last written as a whole, or last found right. */
  readonly #listed = new Map<Family, string>()

  constructor({ log, run = runProgram, ...portals }: NftOptions) {
    this.#table = portals.table ?? defaultTable
    this.#isNamed = portals.table !== undefined
    this.#log = log
    this.#run = run
    this.#places = portalPlaces(portals)
    this.#removeStaleFlows = staleFlowRemoval({ log })
    this.hosts = this.#places.hosts
    this.allocate = this.#places.allocate
    this.release = this.#places.release
  }

  async setup(): Promise<void> {
    await listTables(this.#run)
    this.families = await usableFamilies(this.#run, this.#log)
  }

  async steer(steering: Steering): Promise<void> {
    const { extent, node, added, removed } = steering
    if (extent === 'full' || JSON.stringify(node) !== this.#writtenNode) await this.#writeAll(steering)
    else {
      await this.#write(
        this.families.flatMap((family) =>
          elementChanges(this.#layout(family), elementsIn(family, removed), elementsIn(family, added)),
        ),
      )
      if (extent === 'check' && !(await this.#isIntact(steering))) {
        this.#log.warn('Somebody else changed the tables of the portals; they are written again', {
          table: this.#table,
        })
        await this.#writeAll(steering)
      }
    }
    await this.#removeStaleFlows(steering)
  }

  async missing(): Promise<string | undefined> {
    const present = new Set((await listTables(this.#run)).split('\n'))
    const gone = this.families
      .map((family) => tableName(this.#layout(family)))
      .find((it) => !present.has(`table ${it}`))
    return gone === undefined ? undefined : `the table ${gone} is gone`
  }

  async cleanup(): Promise<void> {
    const present = await listTables(this.#run)
    const found = [...present.matchAll(/^table (ip6? (\S+))$/gm)].filter(([, , name = '']) =>
      this.#isNamed ? name === this.#table : name === defaultTable || name.startsWith(`${defaultTable}-`),
    )
    await this.#write(found.map(([, name]) => `delete table ${name}`))
  }

  async #writeAll({ open, node }: Steering): Promise<void> {
    const lines = this.families.flatMap((family) => {
      const layout = this.#layout(family)
      const name = tableName(layout)
      return [
        // Adding first makes the deletion succeed when there is no such table.
        `add table ${name}`,
        `delete table ${name}`,
        skeleton(layout, this.#places.boundIps(family, node)),
        ...elementChanges(layout, [], [...nodeElements(family, node), ...elementsIn(family, open)]),
      ]
    })
    await this.#write(lines)
    this.#writtenNode = JSON.stringify(node)
    for (const family of this.families) this.#listed.set(family, await this.#list(family))
  }

  /** Reads the tables. What is as it was when last looked at need not be taken apart. */
  async #isIntact({ open, node }: Steering): Promise<boolean> {
    for (const family of this.families) {
      const [before, now] = [this.#listed.get(family) ?? '', await this.#list(family)]
      if (now === '') return false
      if (now === before) continue
      const listing = readListing(now)
      const expected = [...nodeElements(family, node), ...elementsIn(family, open)]
      if (listing.rules !== readListing(before).rules || !holds(listing, expected)) return false
      this.#listed.set(family, now)
    }
    return true
  }

  /** Empty if the table is gone. */
  async #list(family: Family): Promise<string> {
    return this.#run('nft', ['list', 'table', ...tableName(this.#layout(family)).split(' ')]).catch(() => '')
  }

  async #write(lines: readonly string[]): Promise<void> {
    if (lines.length > 0) await this.#run('nft', ['-f', '-'], `${lines.join('\n')}\n`)
  }

  #layout(family: Family) {
    return { family, table: this.#table }
  }
}

const elementsIn = (family: Family, portals: readonly OpenPortal[]): Element[] =>
  portals.filter(({ portal }) => portal.family === family).flatMap(elementsOf)

async function listTables(run: RunProgram): Promise<string> {
  try {
    return await run('nft', ['list', 'tables'])
  } catch (error) {
    if (error instanceof KpngError && error.code === 'unsupported') throw error
    throw new KpngError(
      'unsupported',
      `nft cannot read this machine's tables; run as root or with CAP_NET_ADMIN: ${messageOf(error)}`,
      { cause: error },
    )
  }
}

/** A kernel without IPv6 is served in IPv4 alone. */
async function usableFamilies(run: RunProgram, log: Log): Promise<readonly Family[]> {
  try {
    await run('nft', ['-c', '-f', '-'], 'add table ip6 kpng-userspace-check\n')
    return families
  } catch (error) {
    log.warn('nftables has no IPv6 here: services are proxied in IPv4 only', { error: messageOf(error) })
    return ['IPv4']
  }
}
