import type { NodeView } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import { chainsNeeded, type Elements } from './elements/element.js'
import { ElementState } from './elements/element-state.js'
import { elementCommands } from './elements/element-text.js'
import { type NftOptions, type Settings, settingsOf } from './options.js'
import { familyOfTable, type TableFamily, tableFamilies } from './rules/family.js'
import { rememberedSeconds, setPath, shapesIn, shapesWith, splitSetPath } from './rules/names.js'
import { rememberRules } from './rules/skeleton.js'
import { skeletonText } from './rules/skeleton-text.js'

/**
 * The whole ruleset for a view, as `nft -f` reads it, for people (`--dry-run`) and for tests. The same view gives the same text.
 */
export function renderRuleset(view: NodeView, options: NftOptions = {}): string {
  const settings = settingsOf(options)
  const families = settings.ipv6 === false ? (['ip'] as const) : tableFamilies
  const table = new FrontendTable(settings.dataplane, settings.log)
  const services = new Map([...view.services].sort(([a], [b]) => (a < b ? -1 : 1)))
  const machine = { families: families.map((family) => familyOfTable[family]), addresses: [] }
  table.apply({ ...view, services }, everything, machine)
  return rulesetText(families, settings, new ElementState(settings).rebuild(table))
}

const everything = { full: true, services: new Map(), node: true, serviceCidrs: true, triggers: [] }

/** Tables, chains and elements as one text, which nft executes as one transaction. */
export function rulesetText(families: readonly TableFamily[], settings: Settings, elements: Elements): string {
  const { tableName } = settings
  const parts: string[] = []
  for (const family of families) parts.push(skeletonText(family, settings))
  for (const path of [...chainsNeeded(elements)].sort()) {
    const { family, name } = splitSetPath(path)
    parts.push(rememberChainText(tableName, family, name))
  }
  for (const family of families) {
    for (const [name] of shapesIn(family, shapesWith(settings))) {
      const path = setPath(family, name)
      const map = elements.get(path)
      if (map) parts.push(...elementCommands('add', tableName, path, map))
    }
  }
  return parts.join('')
}

/** The chain that remembers clients for some seconds, as `nft -f` reads it. */
function rememberChainText(tableName: string, family: TableFamily, chain: string): string {
  const seconds = rememberedSeconds(chain) ?? 0
  const rules = rememberRules(family, seconds).map(({ text }) => `    ${text}\n`)
  return `table ${family} ${tableName} {\n  chain ${chain} {\n${rules.join('')}  }\n}\n`
}
