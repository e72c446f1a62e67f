import { type Family, formatAddress, parseAddress } from './address.js'
import {
  type ElementMap,
  endpointData,
  type Protocol,
  portBytes,
  protocolBytes,
  protocolNumbers,
  protocols,
  slotBytes,
  slotOf,
} from './element.js'
import { type FieldKind, type SetPath, type SetShape, shapeOf, splitSetPath, tableName } from './names.js'

// Elements as people and the nft command write them.

const fieldLength = (family: Family, field: FieldKind): number => (field === 'address' && family === 'ip6' ? 16 : 4)

const keyLength = (family: Family, { key }: SetShape): number =>
  key.reduce((length, field) => length + fieldLength(family, field), 0)

function protocolText(number: number): string {
  return protocols.find((name) => protocolNumbers[name] === number) ?? String(number)
}

function fieldText(field: FieldKind, bytes: string): string {
  switch (field) {
    case 'address':
      return formatAddress(bytes)
    case 'protocol':
      return protocolText(bytes.charCodeAt(0))
    case 'port':
      return String((bytes.charCodeAt(0) << 8) | bytes.charCodeAt(1))
    case 'slot':
      return String(slotOf(bytes))
  }
}

function fieldTexts(family: Family, { key }: SetShape, bytes: string): string[] {
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
  const { name } = splitSetPath(path)
  if (shapeOf(name).data === 'chain') return `goto ${data}`
  return `${formatAddress(data.slice(0, -4))} . ${fieldText('port', data.slice(-4))}`
}

export const elementText = (path: SetPath, key: string, data: string): string =>
  data === '' ? keyText(path, key) : `${keyText(path, key)} : ${dataText(path, data)}`

/** Elements of one command: long enough to be quick, short enough to be read. */
const elementsPerCommand = 500

/** `add element` or `delete element` commands for a set. */
export function* elementCommands(verb: 'add' | 'delete', path: SetPath, map: ElementMap): Generator<string> {
  const { family, name } = splitSetPath(path)
  const texts = [...map].map(([key, data]) => (verb === 'add' ? elementText(path, key, data) : keyText(path, key)))
  for (let at = 0; at < texts.length; at += elementsPerCommand) {
    const part = texts.slice(at, at + elementsPerCommand)
    yield `${verb} element ${family} ${tableName} ${name} { ${part.join(', ')} }\n`
  }
}

/** A field as the nft command's JSON gives it, as bytes. Undefined when it is not of that kind. */
export function fieldBytes(field: FieldKind, value: unknown): string | undefined {
  switch (field) {
    case 'address':
      return typeof value === 'string' ? parseAddress(value)?.bytes : undefined
    case 'protocol':
      if (protocols.includes(value as Protocol)) return protocolBytes(value as Protocol)
      return typeof value === 'number' ? `${String.fromCharCode(value)}\0\0\0` : undefined
    case 'port':
      return typeof value === 'number' ? portBytes(value) : undefined
    case 'slot':
      return typeof value === 'number' ? slotBytes(value) : undefined
  }
}

export const endpointBytes = (address: unknown, port: unknown): string | undefined => {
  const bytes = typeof address === 'string' ? parseAddress(address)?.bytes : undefined
  return bytes === undefined || typeof port !== 'number' ? undefined : endpointData(bytes, port)
}
