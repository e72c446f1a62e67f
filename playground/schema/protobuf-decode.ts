import type { JsonObject } from '../objects/types.js'
import { badRequest } from '../status/status.js'
import { resolve } from './definitions.js'
import type { Definition, Field } from './parse.js'

/** `k8s\0`, then a message with the kind, the version and the object. kubectl creates some objects this way. */
const magic = Buffer.from('k8s\0')

export const isProtobuf = (body: Buffer): boolean => body.subarray(0, magic.length).equals(magic)

type WireValue = number | Buffer

/** The fields of a message in their order; numbers for varints, bytes for the rest. */
function* wireFields(bytes: Buffer): Generator<[number, WireValue]> {
  let at = 0
  const varint = (): number => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw badRequest('the protobuf body of the request ends too early')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return Number(BigInt.asIntN(64, value))
    }
  }
  while (at < bytes.length) {
    const tag = varint()
    const wireType = tag & 7
    const number = Math.floor(tag / 8)
    if (wireType === 0) yield [number, varint()]
    else if (wireType === 1 || wireType === 5) at += wireType === 1 ? 8 : 4
    else if (wireType === 2) {
      const length = varint()
      yield [number, bytes.subarray(at, at + length)]
      at += length
    } else throw badRequest(`the protobuf body of the request has an unknown wire type ${wireType}`)
  }
}

const textOf = (value: WireValue | undefined): string => (Buffer.isBuffer(value) ? value.toString('utf8') : '')
const messageOf = (value: WireValue): Map<number, WireValue> => new Map(Buffer.isBuffer(value) ? wireFields(value) : [])

export function decodeProtobuf(body: Buffer, definition: Definition): JsonObject {
  const envelope = messageOf(body.subarray(magic.length))
  const type = messageOf(envelope.get(1) ?? Buffer.alloc(0))
  const raw = envelope.get(2)
  const object = decodeMessage(Buffer.isBuffer(raw) ? raw : Buffer.alloc(0), definition)
  return { apiVersion: textOf(type.get(1)), kind: textOf(type.get(2)), ...object }
}

/** Go writes every field that is not a pointer, also when nobody set it; these are pointers, whose zero means zero. */
const zeroCounts = new Set([
  'replicas',
  'allocateLoadBalancerNodePorts',
  'ready',
  'serving',
  'terminating',
  'gracePeriodSeconds',
  'terminationGracePeriodSeconds',
])

function decodeMessage(bytes: Buffer, definition: Definition): JsonObject {
  const object: JsonObject = {}
  const byNumber = new Map([...definition.fields].map(([name, field]) => [field.number, [name, field] as const]))
  for (const [number, wire] of wireFields(bytes)) {
    const [name, field] = byNumber.get(number) ?? []
    if (name === undefined || field === undefined) continue
    if (field.shape === 'map') {
      const entry = messageOf(wire)
      const entries = (object[name] ?? {}) as JsonObject
      object[name] = entries
      entries[textOf(entry.get(1))] = decodeOne(entry.get(2) ?? Buffer.alloc(0), definition, field)
      continue
    }
    const value = decodeOne(wire, definition, field)
    if (field.shape === 'list') {
      object[name] = [...((object[name] as unknown[] | undefined) ?? []), value]
    } else if (isSet(value) || zeroCounts.has(name)) object[name] = value
  }
  return object
}

const isSet = (value: unknown): boolean =>
  value !== undefined &&
  value !== '' &&
  value !== 0 &&
  value !== false &&
  !(value instanceof Object && Object.keys(value).length === 0)

function decodeOne(wire: WireValue, owner: Definition, field: Field): unknown {
  const type = resolve(owner, field)
  if (type.kind === 'open') return {}
  if (type.kind === 'definition') return decodeMessage(Buffer.isBuffer(wire) ? wire : Buffer.alloc(0), type.definition)
  switch (type.name) {
    case 'boolean':
      return wire === 1
    case 'int32':
    case 'int64':
      return wire
    case 'bytes':
      return Buffer.isBuffer(wire) ? wire.toString('base64') : ''
    case 'Quantity':
      return textOf(messageOf(wire).get(1))
    case 'IntOrString': {
      const value = messageOf(wire)
      return value.get(1) === 1 ? textOf(value.get(3)) : (value.get(2) ?? 0)
    }
    case 'Time':
    case 'MicroTime': {
      const seconds = messageOf(wire).get(1)
      return typeof seconds === 'number' && seconds > 0 ? new Date(seconds * 1000).toISOString() : undefined
    }
    default:
      return textOf(wire)
  }
}
