import { clone } from '../objects/json.js'
import { isObject, type JsonObject, type KubeObject } from '../objects/types.js'
import { definitionOf } from '../schema/definitions.js'
import type { Definition, Field } from '../schema/parse.js'
import { type Cause, StatusError } from '../status/status.js'
import { elementsOf, type FieldSet, fieldsOf, isUnder, keyElement, showPath } from './field-set.js'
import {
  conflictsOf,
  type FieldConflict,
  lastApplied,
  ownedByOthers,
  trackApply,
  type Writer,
} from './managed-fields.js'

/** Server-side apply: merges the applied fields into the live object and removes those the writer no longer applies. */
export function serverSideApply(
  live: KubeObject,
  config: JsonObject,
  definition: Definition | undefined,
  writer: Writer,
  force: boolean,
): { merged: KubeObject; track(object: KubeObject): void } {
  const applied = fieldsOf(config, definition, false)
  const conflicts = force ? [] : conflictsOf(live, applied, definition, writer)
  if (conflicts.length > 0) throw conflictError(conflicts)
  const merged = mergeTyped(live, config, definition) as KubeObject
  merged.metadata = { ...merged.metadata, managedFields: clone(live.metadata.managedFields) }
  removeAbandoned(merged, live, applied, definition, writer)
  return { merged, track: (object) => trackApply(object, live, applied, definition, writer) }
}

function conflictError(conflicts: readonly FieldConflict[]): StatusError {
  const causes: Cause[] = conflicts.map(({ manager, apiVersion, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${JSON.stringify(manager)} using ${apiVersion}`,
    field: showPath(path),
  }))
  const byManager = new Map<string, string[]>()
  for (const { message, field } of causes) byManager.set(message, [...(byManager.get(message) ?? []), field])
  const parts = [...byManager].map(([message, fields]) =>
    fields.length === 1
      ? `${message}: ${fields[0]}`
      : `${message.replace('conflict', 'conflicts')}:\n- ${fields.join('\n- ')}`,
  )
  const count = conflicts.length === 1 ? '1 conflict' : `${conflicts.length} conflicts`
  return new StatusError(409, 'Conflict', `Apply failed with ${count}: ${parts.join('\n')}`, { causes })
}

function mergeTyped(live: unknown, config: JsonObject, definition: Definition | undefined): JsonObject {
  const result: JsonObject = isObject(live) ? { ...live } : {}
  for (const [name, value] of Object.entries(config)) {
    if (value === null) continue
    result[name] = mergeField(result[name], value, definition, definition?.fields.get(name))
  }
  return result
}

function mergeField(live: unknown, value: unknown, owner: Definition | undefined, field: Field | undefined): unknown {
  const type = definitionOf(owner, field)
  if (field === undefined || field.atomic) return clone(value)
  if (field.shape === 'list' && Array.isArray(value)) {
    const current = Array.isArray(live) ? live : []
    if (field.set) return [...current, ...value.filter((item) => !current.includes(item))]
    return mergeItems(current, value, field, type)
  }
  if (field.shape === 'map' && isObject(value)) return { ...(isObject(live) ? live : {}), ...clone(value) }
  if (type && isObject(value)) return mergeTyped(live, value, type)
  return clone(value)
}

function mergeItems(live: unknown[], applied: unknown[], field: Field, type: Definition | undefined): unknown[] {
  const key = (item: unknown) => (isObject(item) ? keyElement(item, field, type) : JSON.stringify(item))
  const byKey = new Map(live.map((item) => [key(item), item]))
  const merged = applied.map((item) => (isObject(item) ? mergeTyped(byKey.get(key(item)), item, type) : item))
  const named = new Set(applied.map(key))
  return [...merged, ...live.filter((item) => !named.has(key(item)))]
}

/** What the writer applied before, does not any more, and nobody else owns, goes. */
function removeAbandoned(
  merged: KubeObject,
  live: KubeObject,
  applied: FieldSet,
  definition: Definition | undefined,
  writer: Writer,
): void {
  const others = ownedByOthers(live, writer)
  const kept = (path: string): boolean => {
    if (applied.has(path) || others.has(path)) return true
    const below = (other: string) => isUnder(other, path)
    return [...applied.keys()].some(below) || [...others].some(below)
  }
  const gone = [...lastApplied(live, writer)].filter((path) => !kept(path))
  // An item goes before its fields: a list item without its keys could not be found any more.
  for (const path of gone.sort((a, b) => a.length - b.length)) removePath(merged, elementsOf(path), definition)
}

function removePath(container: unknown, [element = '', ...rest]: string[], definition: Definition | undefined): void {
  if (!isObject(container) || !element.startsWith('f:')) return
  const name = element.slice(2)
  const field = definition?.fields.get(name)
  const value = container[name]
  if (rest.length === 0) {
    delete container[name]
    return
  }
  const type = definitionOf(definition, field)
  const [next = '', ...below] = rest
  if (!Array.isArray(value) || !field) {
    if (!isObject(value)) return
    const copy = { ...value }
    container[name] = copy
    removePath(copy, rest, type)
    return
  }
  const matches = (item: unknown) =>
    next.startsWith('v:')
      ? JSON.stringify(item) === next.slice(2)
      : isObject(item) && keyElement(item, field, type) === next
  if (below.length === 0) {
    const left = value.filter((item) => !matches(item))
    if (left.length === 0) delete container[name]
    else container[name] = left
    return
  }
  container[name] = value.map((item) => {
    if (!matches(item) || !isObject(item)) return item
    const copy = { ...item }
    removePath(copy, below, type)
    return copy
  })
}
