import type { Family } from './address.js'
import { families as allFamilies } from './address.js'
import type { Elements } from './element.js'
import { elementCommands } from './element-text.js'
import { names, type SetPath, sealSet, splitSetPath, tableName } from './names.js'
import type { NftCommand } from './nft-command.js'
import type { Settings } from './options.js'
import { skeletonText, skeletonVersion } from './skeleton.js'
import type { ChainPath, TableOutline, Writer } from './writer.js'

/** `ours`: rules and sets are these very ones, and nothing else. `missing`: no table. `other`: another version, or somebody changed it. */
export type TableState = 'ours' | 'missing' | 'other'

/** Our tables in the kernel: their rules. What is in their sets is the writer's. */
export class Tables {
  readonly #nft: NftCommand
  readonly #settings: Settings
  readonly #families: readonly Family[]
  readonly #versions: ReadonlyMap<Family, string>

  constructor(nft: NftCommand, families: readonly Family[], settings: Settings) {
    this.#nft = nft
    this.#families = families
    this.#settings = settings
    this.#versions = new Map(families.map((family) => [family, skeletonVersion(family, settings)]))
  }

  /** What is there, and the chains that earlier runs made beyond the skeleton. */
  async inspect(writer: Writer): Promise<{ states: Map<Family, TableState>; extraChains: Set<ChainPath> }> {
    const states = new Map<Family, TableState>()
    const extraChains = new Set<ChainPath>()
    for (const family of this.#families) {
      const outline = await writer.outline(family)
      states.set(family, outline ? this.#stateOf(family, outline) : 'missing')
      for (const chain of outline?.rememberChains.keys() ?? []) extraChains.add(`${family} ${chain}`)
    }
    return { states, extraChains }
  }

  #stateOf(family: Family, { sets, rememberChains, digest }: TableOutline): TableState {
    const isOurs =
      sets.has(this.#versions.get(family) ?? '') &&
      sets.has(sealSet(digest)) &&
      [...rememberChains.values()].every((isWhole) => isWhole)
    return isOurs ? 'ours' : 'other'
  }

  /** Makes tables that do not exist, without elements: until those come, everything passes as if there were no table. */
  async make(families: readonly Family[], writer: Writer): Promise<void> {
    await this.#nft.apply(families.map((family) => skeletonText(family, this.#settings)).join(''))
    await this.#seal(families, writer)
  }

  /**
   * Puts new tables with all their elements in the place of old ones, in one transaction. Maps to chains stay empty: nft before
   * 1.0.7 could not make those chains, so the writer does, right after.
   */
  async replace(families: readonly Family[], elements: Elements, writer: Writer): Promise<void> {
    const parts: string[] = []
    for (const family of families) {
      parts.push(`add table ${family} ${tableName}\ndelete table ${family} ${tableName}\n`)
      parts.push(skeletonText(family, this.#settings))
    }
    for (const [path, map] of withoutChainMaps(elements, families)) parts.push(...elementCommands('add', path, map))
    await this.#nft.apply(parts.join(''))
    await this.#seal(families, writer)
  }

  /** Notes in new tables what the kernel made of our text, so that any change to it shows, after a restart too. */
  async #seal(families: readonly Family[], writer: Writer): Promise<void> {
    const parts: string[] = []
    for (const family of families) {
      const outline = await writer.outline(family)
      if (outline) parts.push(`add set ${family} ${tableName} ${sealSet(outline.digest)} { type mark; }\n`)
    }
    await this.#nft.apply(parts.join(''))
  }
}

/** How many transactions it takes to make or replace tables. */
export const transactionsToMake = 2

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
