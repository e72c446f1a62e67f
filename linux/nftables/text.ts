import {
  addressText,
  type ElementMap,
  type Elements,
  markOf,
  portOf,
  protocolText,
  type SetPath,
  slotOf,
  splitSetPath,
} from './element.js'
import { addressBytesIn, type TableFamily } from './family.js'
import { type Chain, type Ruleset, rulesetVersion } from './ruleset.js'
import { type FieldKind, markerDefinition, type SetShape, setDefinition } from './set.js'
import { chainsNeeded, shapeAt } from './tables.js'

// Rulesets and elements as people and the nft command write them.

const fieldLength = (family: TableFamily, field: FieldKind): number =>
  field === 'address' ? addressBytesIn[family] : 4

const keyLength = (family: TableFamily, { key }: SetShape): number =>
  key.reduce((length, field) => length + fieldLength(family, field), 0)

function fieldText(field: FieldKind, bytes: string): string {
  switch (field) {
    case 'address':
      return addressText(bytes)
    case 'protocol':
      return protocolText(bytes.charCodeAt(0))
    case 'port':
      return String(portOf(bytes))
    case 'slot':
      return String(slotOf(bytes))
    case 'mark':
      return `0x${markOf(bytes).toString(16)}`
  }
}

function fieldTexts(family: TableFamily, fields: readonly FieldKind[], bytes: string): string[] {
  let at = 0
  return fields.map((field) => {
    const length = fieldLength(family, field)
    const text = fieldText(field, bytes.slice(at, at + length))
    at += length
    return text
  })
}

/** `10.96.0.1 . tcp . 80`, or a range. */
function keyText(family: TableFamily, shape: SetShape, bytes: string): string {
  const first = fieldTexts(family, shape.key, bytes).join(' . ')
  if (!shape.interval) return first
  const last = fieldTexts(family, shape.key, bytes.slice(keyLength(family, shape))).join(' . ')
  return first === last ? first : `${first}-${last}`
}

/** `10.244.1.2 . 8080` or `goto remember-60`. */
const dataText = (family: TableFamily, { data }: SetShape, bytes: string): string =>
  typeof data === 'object' ? fieldTexts(family, data, bytes).join(' . ') : bytes

function elementText(ruleset: Ruleset, path: SetPath, key: string, data: string): string {
  const { family } = splitSetPath(path)
  const shape = shapeAt(ruleset, path)
  const text = keyText(family, shape, key)
  return data === '' ? text : `${text} : ${dataText(family, shape, data)}`
}

/** Elements per command: enough to be fast, few enough to be readable. */
const elementsPerCommand = 500

/** `add element` commands for a set. */
function* elementCommands(ruleset: Ruleset, path: SetPath, map: ElementMap): Generator<string> {
  const { family, name } = splitSetPath(path)
  const texts = [...map].map(([key, data]) => elementText(ruleset, path, key, data))
  for (let at = 0; at < texts.length; at += elementsPerCommand) {
    const part = texts.slice(at, at + elementsPerCommand)
    yield `add element ${family} ${ruleset.tableName} ${name} { ${part.join(', ')} }\n`
  }
}

/** Elements one per line, in a fixed order: `ip endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.1.2 . 8080`. */
export function elementLines(ruleset: Ruleset, elements: Elements): string[] {
  const lines: string[] = []
  for (const [path, map] of elements) {
    for (const [key, data] of map) lines.push(`${path} ${elementText(ruleset, path, key, data)}`)
  }
  return lines.sort()
}

const chainText = ({ name, hook, rules }: Chain): string =>
  [
    `  chain ${name} {`,
    ...(hook ? [`    type ${hook.type} hook ${hook.name} priority ${hook.priority}; policy accept;`] : []),
    ...rules.map(({ text }) => `    ${text}`),
    '  }',
  ].join('\n')

/** A table without its elements, as `nft -f` reads it. */
export function tableText(family: TableFamily, ruleset: Ruleset): string {
  const chains = ruleset.chains(family)
  const sets = [...ruleset.sets[family]].map(([name, shape]) => setDefinition(family, name, shape))
  const marker = markerDefinition(rulesetVersion(family, ruleset, chains))
  return `table ${family} ${ruleset.tableName} {\n${[...sets, marker, ...chains.map(chainText)].join('\n')}\n}\n`
}

/** Tables, chains and elements as one text, which nft executes as one transaction. */
export function rulesetText(families: readonly TableFamily[], ruleset: Ruleset, elements: Elements): string {
  const parts = families.map((family) => tableText(family, ruleset))
  for (const path of [...chainsNeeded(ruleset, elements)].sort()) {
    const { family, name } = splitSetPath(path)
    const rules = ruleset.extraChain?.(family, name) ?? []
    parts.push(`table ${family} ${ruleset.tableName} {\n${chainText({ name, rules })}\n}\n`)
  }
  for (const family of families) {
    for (const name of ruleset.sets[family].keys()) {
      const map = elements.get(`${family} ${name}`)
      if (map) parts.push(...elementCommands(ruleset, `${family} ${name}`, map))
    }
  }
  return parts.join('')
}
