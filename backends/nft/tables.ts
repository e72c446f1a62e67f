import type { Family } from './address.js'
import { families as allFamilies } from './address.js'
import type { Elements } from './element.js'
import { elementCommands } from './element-text.js'
import { names, type SetPath, shapesWith, splitSetPath, tableName } from './names.js'
import type { NftCommand } from './nft-command.js'
import type { Settings } from './options.js'
import { type Chain, chainsOf, skeletonText, skeletonVersion } from './skeleton.js'
import type { ChainPath, TableOutline, Writer } from './writer.js'

/** `ours`: rules and sets are these very ones. `missing`: no table. `other`: another version, or damaged. */
export type TableState = 'ours' | 'missing' | 'other'

/** Our tables in the kernel: their rules. What is in their sets is the writer's. */
export class Tables {
  readonly #nft: NftCommand
  readonly #settings: Settings
  readonly #families: readonly Family[]
  readonly #versions: ReadonlyMap<Family, string>
  readonly #chains: ReadonlyMap<Family, readonly Chain[]>

  constructor(nft: NftCommand, families: readonly Family[], settings: Settings) {
    this.#nft = nft
    this.#families = families
    this.#settings = settings
    this.#versions = new Map(families.map((family) => [family, skeletonVersion(family, settings)]))
    this.#chains = new Map(families.map((family) => [family, chainsOf(family, settings)]))
  }

  /** What is there, and the chains that earlier runs made beyond the skeleton. */
  async inspect(writer: Writer): Promise<{ states: Map<Family, TableState>; extraChains: Set<ChainPath> }> {
    const states = new Map<Family, TableState>()
    const extraChains = new Set<ChainPath>()
    for (const family of this.#families) {
      const outline = await writer.outline(family)
      states.set(family, outline ? this.#stateOf(family, outline) : 'missing')
      for (const [chain, rules] of outline?.chains ?? []) {
        if (/^remember-\d+$/.test(chain) && rules > 0) extraChains.add(`${family} ${chain}`)
      }
    }
    return { states, extraChains }
  }

  #stateOf(family: Family, { sets, chains }: TableOutline): TableState {
    const isWhole =
      sets.has(this.#versions.get(family) ?? '') &&
      [...shapesWith(this.#settings).keys()].every((name) => sets.has(name)) &&
      (this.#chains.get(family) ?? []).every(({ name, rules }) => chains.get(name) === rules.length)
    return isWhole ? 'ours' : 'other'
  }

  /** Makes tables that do not exist, without elements: until those come, everything passes as if there were no table. */
  async make(families: readonly Family[]): Promise<void> {
    if (families.length > 0)
      await this.#nft.apply(families.map((family) => skeletonText(family, this.#settings)).join(''))
  }

  /**
   * Puts new tables with all their elements in the place of old ones, in one transaction. Maps to chains stay empty: nft before
   * 1.0.7 could not make those chains, so the writer does, right after.
   */
  async replace(families: readonly Family[], elements: Elements): Promise<void> {
    const parts: string[] = []
    for (const family of families) {
      parts.push(`add table ${family} ${tableName}\ndelete table ${family} ${tableName}\n`)
      parts.push(skeletonText(family, this.#settings))
    }
    for (const [path, map] of withoutChainMaps(elements, families)) parts.push(...elementCommands('add', path, map))
    await this.#nft.apply(parts.join(''))
  }
}

/** Those of the elements that `replace` brings. */
export function withoutChainMaps(elements: Elements, families: readonly Family[]): Map<SetPath, Map<string, string>> {
  return new Map(
    [...elements].filter(([path]) => {
      const { family, name } = splitSetPath(path)
      return families.includes(family) && name !== names.sticky && name !== names.stickyNodePorts
    }),
  )
}

/** Takes our tables away, whichever of them exist. */
export async function removeTables(nft: NftCommand): Promise<void> {
  const parts: string[] = []
  for (const family of allFamilies) {
    if (await nft.outline(family)) parts.push(`delete table ${family} ${tableName}\n`)
  }
  if (parts.length > 0) await nft.apply(parts.join(''))
}
