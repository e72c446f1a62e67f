import { isObject, type JsonObject } from '../objects/types.js'
import { resolve } from './definitions.js'
import type { Definition, Field } from './parse.js'

interface SchemaProblems {
  /** Fields the type does not have, by path: a warning, or an error when the writer asked to be strict. */
  unknown: string[]
  /** Values of a wrong type, in Go's words: always an error. */
  mistyped: string[]
}

/** Compares an object with its type, as the API server's decoder does; unknown fields are also removed from the object. */
export function checkSchema(object: JsonObject, definition: Definition): SchemaProblems {
  const problems: SchemaProblems = { unknown: [], mistyped: [] }
  checkObject(object, definition, '', problems)
  return problems
}

function checkObject(object: JsonObject, definition: Definition, path: string, problems: SchemaProblems): void {
  for (const [name, value] of Object.entries(object)) {
    const at = path === '' ? name : `${path}.${name}`
    const field = definition.fields.get(name)
    if (!field) {
      problems.unknown.push(`unknown field "${at}"`)
      delete object[name]
    } else if (value === null) delete object[name]
    else checkValue(value, definition, field, at, problems)
  }
}

function mistype(value: unknown, owner: Definition, at: string, expected: string, problems: SchemaProblems): void {
  const found = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value
  const type = owner.name.slice(owner.name.lastIndexOf('.') + 1)
  const path = at.replace(/\[\d+\]/g, '')
  problems.mistyped.push(`json: cannot unmarshal ${found} into Go struct field ${type}.${path} of type ${expected}`)
}

function checkValue(value: unknown, owner: Definition, field: Field, at: string, problems: SchemaProblems): void {
  if (field.shape === 'list') {
    if (!Array.isArray(value)) mistype(value, owner, at, `[]${field.type}`, problems)
    else for (const [index, item] of value.entries()) checkOne(item, owner, field, `${at}[${index}]`, problems)
  } else if (field.shape === 'map') {
    if (!isObject(value)) mistype(value, owner, at, `map[string]${field.type}`, problems)
    else for (const [name, item] of Object.entries(value)) checkOne(item, owner, field, `${at}.${name}`, problems)
  } else checkOne(value, owner, field, at, problems)
}

function checkOne(value: unknown, owner: Definition, field: Field, at: string, problems: SchemaProblems): void {
  const type = resolve(owner, field)
  if (type.kind === 'definition') {
    if (isObject(value)) checkObject(value, type.definition, at, problems)
    else mistype(value, owner, at, `v1.${field.type}`, problems)
    return
  }
  if (type.kind === 'open') return
  if (!isScalar(value, type.name)) mistype(value, owner, at, type.name === 'boolean' ? 'bool' : type.name, problems)
}

function isScalar(value: unknown, name: string): boolean {
  switch (name) {
    case 'boolean':
      return typeof value === 'boolean'
    case 'int32':
      return Number.isInteger(value) && Math.abs(Number(value)) <= 2 ** 31
    case 'int64':
      return Number.isInteger(value)
    case 'IntOrString':
    case 'Quantity':
      return typeof value === 'string' || typeof value === 'number'
    case 'Time':
    case 'MicroTime':
      return typeof value === 'string' && !Number.isNaN(Date.parse(value))
    default:
      return typeof value === 'string'
  }
}
