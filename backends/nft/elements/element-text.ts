import { addressBytesIn, type TableFamily } from '../rules/family.js'
import { type FieldKind, type SetPath, type SetShape, shapeOf, splitSetPath } from '../rules/names.js'
import { addressText, type ElementMap, type Elements, portOf, protocolText, slotOf } from './element.js'

// Elements as people and the nft command write them.

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
  }
}

function fieldTexts(family: TableFamily, { key }: SetShape, bytes: string): string[] {
  let at = 0
  return key.map((field) => {
    const length = fieldLength(family, field)
    const text = fieldText(field, bytes.slice(at, at + length))
    at += length
    return text
  })
}

/** `10.96.0.1 . tcp . 80`, or with a range for its last field. */
export function keyText(path: SetPath, key: string): string {
  const { family, name } = splitSetPath(path)
  const shape = shapeOf(name)
  const first = fieldTexts(family, shape, key)
  if (!shape.interval) return first.join(' . ')
  const last = fieldTexts(family, shape, key.slice(keyLength(family, shape)))
  return first.map((text, index) => (text === last[index] ? text : `${text}-${last[index]}`)).join(' . ')
}

/** `10.244.1.2 . 8080` or `goto remember-60`. */
export function dataText(path: SetPath, data: string): string {
  const kind = shapeOf(splitSetPath(path).name).data
  if (kind === 'chain') return `goto ${data}`
  if (kind === 'address') return addressText(data)
  return `${addressText(data.slice(0, -4))} . ${portOf(data.slice(-4))}`
}

export const elementText = (path: SetPath, key: string, data: string): string =>
  data === '' ? keyText(path, key) : `${keyText(path, key)} : ${dataText(path, data)}`

/** Elements per command: enough to be fast, few enough to be readable. */
const elementsPerCommand = 500

/** `add element` or `delete element` commands for a set. */
export function* elementCommands(
  verb: 'add' | 'delete',
  table: string,
  path: SetPath,
  map: ElementMap,
): Generator<string> {
  const { family, name } = splitSetPath(path)
  const texts = [...map].map(([key, data]) => (verb === 'add' ? elementText(path, key, data) : keyText(path, key)))
  for (let at = 0; at < texts.length; at += elementsPerCommand) {
    const part = texts.slice(at, at + elementsPerCommand)
    yield `${verb} element ${family} ${table} ${name} { ${part.join(', ')} }\n`
  }
}

/** Elements one per line, in a fixed order: `ip endpoints 10.96.0.1 . tcp . 80 . 0 : 10.244.1.2 . 8080`. */
export function elementLines(elements: Elements): string[] {
  const lines: string[] = []
  for (const [path, map] of elements) {
    for (const [key, data] of map) lines.push(`${path} ${elementText(path, key, data)}`)
  }
  return lines.sort()
}
