import type { NodeView } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import { familyOfTable, rulesetText, tableFamilies } from '@kpng/linux/nftables'
import { ElementState } from './elements/element-state.js'
import { type NftOptions, settingsOf } from './options.js'
import { nftRuleset } from './rules/skeleton.js'

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
  return rulesetText(families, nftRuleset(settings), new ElementState(settings).rebuild(table))
}

const everything = { full: true, services: new Map(), node: true, serviceCidrs: true, triggers: [] }
