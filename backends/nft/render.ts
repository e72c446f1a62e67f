import { silentLog } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import { families as allFamilies, type Family } from './address.js'
import { DesiredState } from './desired-state.js'
import type { Elements } from './element.js'
import { protocols } from './element.js'
import { elementCommands, elementText } from './element-text.js'
import { findShape, rememberedSeconds, setPath, shapesIn, shapesWith, splitSetPath, tableName } from './names.js'
import { nodeContext } from './node-context.js'
import { type NftOptions, type Settings, settingsOf } from './options.js'
import { rememberRule, skeletonText } from './skeleton.js'

/** The chain of a distinct affinity time, as `nft -f` reads it. */
export function rememberChainText(family: Family, chain: string): string {
  const seconds = rememberedSeconds(chain) ?? 0
  const rules = protocols.map((protocol) => `    ${rememberRule(family, protocol, seconds)}\n`)
  return `table ${family} ${tableName} {\n  chain ${chain} {\n${rules.join('')}  }\n}\n`
}

/** The chains that elements go to and that are not part of the skeleton. */
export function chainsNeeded(elements: Elements): Set<string> {
  const chains = new Set<string>()
  for (const [path, map] of elements) {
    const { family, name } = splitSetPath(path)
    if (findShape(name)?.data === 'chain') for (const chain of map.values()) chains.add(`${family} ${chain}`)
  }
  return chains
}

/**
 * The whole ruleset for a view, as `nft -f` reads it, for people (`--dry-run`) and for the nft writer. The same view gives the
 * same text.
 */
export function renderRuleset(view: NodeView, options: NftOptions = {}): string {
  const settings = settingsOf(options)
  const families = settings.ipv6 === false ? (['ip'] as const) : allFamilies
  const context = nodeContext(view.node, { families, hostAddresses: () => [] }, settings)
  const state = new DesiredState(settings.log ?? silentLog)
  const inOrder = { ...view, services: new Map([...view.services].sort(([a], [b]) => (a < b ? -1 : 1))) }
  return rulesetText(families, settings, state.rebuild(inOrder, context))
}

/** Tables, chains and elements as one text: one transaction when nft reads it. */
export function rulesetText(families: readonly Family[], settings: Settings, elements: Elements): string {
  const parts: string[] = []
  for (const family of families) parts.push(skeletonText(family, settings))
  for (const id of [...chainsNeeded(elements)].sort()) {
    const { family, name } = splitSetPath(id as `${Family} ${string}`)
    parts.push(rememberChainText(family, name))
  }
  for (const family of families) {
    for (const [name] of shapesIn(family, shapesWith(settings))) {
      const path = setPath(family, name)
      const map = elements.get(path)
      if (map) parts.push(...elementCommands('add', path, map))
    }
  }
  return parts.join('')
}

/** Elements one a line, in a fixed order: `ip endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.1.2 . 8080`. */
export function elementLines(elements: Elements): string[] {
  const lines: string[] = []
  for (const [path, map] of elements)
    for (const [key, data] of map) lines.push(`${path} ${elementText(path, key, data)}`)
  return lines.sort()
}
