import type { Family } from '@kpng/api'
import { asStep, type SyncStep } from '@kpng/client'
import { loadLibc, NETLINK_NETFILTER, NetlinkSocket } from '@kpng/linux'
import { readNftGeneration } from '@kpng/linux/nftables'
import { applyRules, readRules, readTable, tableDrift } from './nft.js'
import { changeText, type Place, type RuleSettings, tableText } from './rules.js'
import type { IpvsState, Update } from './state.js'

/**
 * Our nftables tables, and whether others have changed them. Listing a table takes long, so it is done only if the generation of
 * nftables says that somebody else has changed some table.
 */
export class Tables {
  readonly #settings: RuleSettings
  readonly #socket: NetlinkSocket
  /** The rules as nft lists them, by family, right after they were written. */
  readonly #rules = new Map<Family, string>()
  /** The generation in which our tables are known to be as we wrote them. Undefined: none. */
  #knownGeneration: number | undefined

  private constructor(settings: RuleSettings, socket: NetlinkSocket) {
    this.#settings = settings
    this.#socket = socket
  }

  static async open(settings: RuleSettings): Promise<Tables> {
    return new Tables(settings, new NetlinkSocket(await loadLibc(), NETLINK_NETFILTER))
  }

  /** Writes the tables, whatever is there. */
  async replace(state: IpvsState, places: readonly Place[], steps?: SyncStep[]): Promise<void> {
    const text = places.map((place) => tableText(place, state.elements(place.family), this.#settings)).join('')
    const before = await readNftGeneration(this.#socket)
    await this.#write(text, steps)
    for (const { family } of places) {
      this.#rules.set(family, (await readRules(family, this.#settings.tableName)) ?? '')
    }
    await this.#wroteOnce(before)
  }

  /** Writes what changed. */
  async change(elements: Update['elements'], served: readonly Family[], steps?: SyncStep[]): Promise<void> {
    const { tableName } = this.#settings
    const text = served
      .map((family) => changeText(family, tableName, elements[family].add, elements[family].remove))
      .join('')
    if (text === '') return
    const before = await readNftGeneration(this.#socket)
    const isKnown = before === this.#knownGeneration
    await this.#write(text, steps)
    if (isKnown) await this.#wroteOnce(before)
  }

  /** What somebody else changed, as a part of a sentence; undefined if nothing. */
  async drift(state: IpvsState, served: readonly Family[]): Promise<string | undefined> {
    const { tableName } = this.#settings
    const generation = await readNftGeneration(this.#socket)
    if (generation === this.#knownGeneration) return undefined
    for (const family of served) {
      const reason = tableDrift(await readTable(family, tableName), this.#rules.get(family), state, family)
      if (reason !== undefined) return `${reason} in the table ${tableName} (${family})`
    }
    this.#knownGeneration = generation
    return undefined
  }

  close(): void {
    this.#socket.close()
  }

  /** One transaction. */
  #write(text: string, steps: SyncStep[] | undefined): Promise<void> {
    return asStep(steps, 'nft', { 'kpng.bytes': text.length }, () => applyRules(text))
  }

  /** If ours was the only transaction since a generation in which the tables were right, they are right now. */
  async #wroteOnce(before: number): Promise<void> {
    const after = await readNftGeneration(this.#socket)
    this.#knownGeneration = after === (before + 1) >>> 0 ? after : undefined
  }
}
