import type { ChainPath, Elements } from '../elements/element.js'
import { elementCommands } from '../elements/element-text.js'
import type { TableFamily } from '../rules/family.js'
import { defaultTableName, isForeignTable, names, sealSet, splitSetPath } from '../rules/names.js'
import { type RuleSettings, skeletonText, skeletonVersion } from '../rules/skeleton.js'
import type { NetlinkWriter } from './netlink-writer.js'
import type { NftCommand } from './nft-command.js'
import type { TableOutline } from './outline.js'

/** `ours`: exactly the rules and sets that this version makes. `missing`: no table. `other`: another version, or somebody changed it. */
export type TableState = 'ours' | 'missing' | 'other'

/** The rules of our tables in the kernel. The writer handles the contents of the sets. */
export class Tables {
  readonly #nft: NftCommand
  readonly #settings: RuleSettings
  readonly #families: readonly TableFamily[]
  readonly #versions: ReadonlyMap<TableFamily, string>

  constructor(nft: NftCommand, families: readonly TableFamily[], settings: RuleSettings) {
    this.#nft = nft
    this.#families = families
    this.#settings = settings
    this.#versions = new Map(families.map((family) => [family, skeletonVersion(family, settings)]))
  }

  /** The state of a table, and the chains that earlier runs added to the skeleton. */
  async inspect(writer: NetlinkWriter): Promise<{ states: Map<TableFamily, TableState>; extraChains: Set<ChainPath> }> {
    const states = new Map<TableFamily, TableState>()
    const extraChains = new Set<ChainPath>()
    for (const family of this.#families) {
      const outline = await writer.outline(family)
      states.set(family, outline ? this.#stateOf(family, outline) : 'missing')
      for (const chain of outline?.rememberChains.keys() ?? []) extraChains.add(`${family} ${chain}`)
    }
    return { states, extraChains }
  }

  #stateOf(family: TableFamily, { sets, rememberChains, digest }: TableOutline): TableState {
    const isOurs =
      sets.has(this.#versions.get(family) ?? '') &&
      sets.has(sealSet(digest)) &&
      [...rememberChains.values()].every((isWhole) => isWhole)
    return isOurs ? 'ours' : 'other'
  }

  /** Makes tables that do not exist, without elements. Until elements are added, all packets pass as if there were no table. */
  async make(families: readonly TableFamily[], writer: NetlinkWriter): Promise<void> {
    await this.#nft.apply(families.map((family) => skeletonText(family, this.#settings)).join(''))
    await this.#seal(families, writer)
  }

  /**
   * Replaces old tables by new ones with all elements, in one transaction. Maps to chains stay empty: nft before 1.0.7 cannot make
   * those chains, so the writer adds them right after.
   */
  async replace(families: readonly TableFamily[], elements: Elements, writer: NetlinkWriter): Promise<void> {
    const { tableName } = this.#settings
    const parts: string[] = []
    for (const family of families) {
      parts.push(`add table ${family} ${tableName}\ndelete table ${family} ${tableName}\n`)
      parts.push(skeletonText(family, this.#settings))
    }
    for (const [path, map] of elementsToReplace(elements, families)) {
      parts.push(...elementCommands('add', tableName, path, map))
    }
    await this.#nft.apply(parts.join(''))
    await this.#seal(families, writer)
  }

  /** Records in new tables what the kernel made of our text, so that any change can be detected, even after a restart. */
  async #seal(families: readonly TableFamily[], writer: NetlinkWriter): Promise<void> {
    const parts: string[] = []
    for (const family of families) {
      const outline = await writer.outline(family)
      if (outline)
        parts.push(`add set ${family} ${this.#settings.tableName} ${sealSet(outline.digest)} { type mark; }\n`)
    }
    await this.#nft.apply(parts.join(''))
  }
}

/** The number of transactions that make or replace tables. */
export const transactionsToMake = 2

/** The elements that `replace` writes. */
export function elementsToReplace(elements: Elements, families: readonly TableFamily[]): Elements {
  return new Map(
    [...elements].filter(([path]) => {
      const { family, name } = splitSetPath(path)
      return families.includes(family) && name !== names.sticky && name !== names.stickyNodePorts
    }),
  )
}

/** @param tableName removes the tables of this name; undefined: all tables of kpng */
export async function removeTables(nft: NftCommand, tableName: string | undefined): Promise<void> {
  const isOurs = (name: string) => {
    if (tableName !== undefined) return name === tableName
    return name === defaultTableName || (name.startsWith(`${defaultTableName}-`) && !isForeignTable(name))
  }
  const ours = (await nft.tables()).filter(({ family, name }) => isTableFamily(family) && isOurs(name))
  if (ours.length > 0) await nft.apply(ours.map(({ family, name }) => `delete table ${family} ${name}\n`).join(''))
}

const isTableFamily = (family: string): boolean => family === 'ip' || family === 'ip6'
