import { createHash } from 'node:crypto'
import type { TableFamily } from './family.js'
import { shapesIn, shapesWith } from './names.js'
import { markerDefinition, setAttributes, setDefinition } from './set-definition.js'
import { type Chain, chainsOf, type RuleSettings } from './skeleton.js'
import type { Statement } from './statement.js'

// The skeleton for people, and what tells one version of it from another.

const chainText = ({ name, hook, rules }: Chain): string =>
  [
    `  chain ${name} {`,
    ...(hook ? [`    type ${hook.type} hook ${hook.name} priority ${hook.priority}; policy accept;`] : []),
    ...rules.map(({ text }) => `    ${text}`),
    '  }',
  ].join('\n')

/** The table without its elements, as `nft -f` reads it. */
export function skeletonText(family: TableFamily, settings: RuleSettings): string {
  const sets = shapesIn(family, shapesWith(settings)).map(([name, shape]) => setDefinition(family, name, shape))
  const chains = chainsOf(family, settings)
  const marker = markerDefinition(skeletonVersion(family, settings, chains))
  return `table ${family} ${settings.tableName} {\n${[...sets, marker, ...chains.map(chainText)].join('\n')}\n}\n`
}

/**
 * A set with this name marks a table with exactly these rules. A table of any other version, or with other options, is replaced as
 * a whole.
 */
export function skeletonVersion(
  family: TableFamily,
  settings: RuleSettings,
  chains: readonly Chain[] = chainsOf(family, settings),
): string {
  const sets = shapesIn(family, shapesWith(settings)).map(([name, shape]) => [name, setAttributes(family, shape)])
  // In most chains equal rules follow one another; each of them is serialized once.
  const ruleOnce = (rule: Statement, index: number, rules: readonly Statement[]) =>
    rule === rules[index - 1] ? 'again' : rule
  const all = JSON.stringify([sets, chains.map((chain) => ({ ...chain, rules: chain.rules.map(ruleOnce) }))])
  return `skeleton-${createHash('sha256').update(all).digest('hex').slice(0, 12)}`
}
