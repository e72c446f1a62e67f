import { equal } from '../objects/json.js'
import { timestamp } from '../objects/time.js'
import type { JsonObject, KubeObject, ManagedFieldsEntry } from '../objects/types.js'
import type { Definition } from '../schema/parse.js'
import { decodeFields, encodeFields, type FieldSet, fieldsOf } from './field-set.js'

/** Who writes, and through which door. */
export interface Writer {
  manager: string
  operation: 'Apply' | 'Update'
  subresource: string
  apiVersion: string
}

const isOf = (entry: ManagedFieldsEntry, writer: Writer): boolean =>
  entry.manager === writer.manager &&
  entry.operation === writer.operation &&
  (entry.subresource ?? '') === writer.subresource

/** An entry with another set of fields; gone when the set is empty. */
function withFields(entry: ManagedFieldsEntry, paths: Set<string>): ManagedFieldsEntry[] {
  return paths.size === 0 ? [] : [{ ...entry, fieldsV1: encodeFields(paths) }]
}

const newEntry = (writer: Writer, paths: Set<string>): ManagedFieldsEntry[] => {
  const { manager, operation, apiVersion, subresource } = writer
  const entry = { manager, operation, apiVersion, time: timestamp(), fieldsType: 'FieldsV1' }
  return withFields(subresource === '' ? entry : { ...entry, subresource }, paths)
}

/** The fields that are new or have another value, and those that are gone. */
function difference(
  old: KubeObject | undefined,
  object: KubeObject,
  definition: Definition | undefined,
): { changed: Set<string>; removed: Set<string> } {
  const before: FieldSet = old ? fieldsOf(old, definition, true) : new Map()
  const after = fieldsOf(object, definition, true)
  const changed = new Set<string>()
  const removed = new Set<string>()
  for (const [path, value] of after) if (!before.has(path) || !equal(before.get(path), value)) changed.add(path)
  for (const path of before.keys()) if (!after.has(path)) removed.add(path)
  return { changed, removed }
}

const minus = (paths: Set<string>, ...others: Set<string>[]): Set<string> =>
  new Set([...paths].filter((path) => !others.some((other) => other.has(path))))

/** After a create, replace or patch: the writer owns what it changed, the others lose that. */
export function trackUpdate(
  object: KubeObject,
  old: KubeObject | undefined,
  definition: Definition | undefined,
  writer: Writer,
): void {
  const { changed, removed } = difference(old, object, definition)
  const entries = object.metadata.managedFields ?? []
  if (changed.size === 0 && removed.size === 0) return
  const own = entries.find((entry) => isOf(entry, writer))
  const others = entries
    .filter((entry) => entry !== own)
    .flatMap((entry) => {
      const had = decodeFields(entry.fieldsV1)
      const kept = minus(had, changed, removed)
      return kept.size === had.size ? [entry] : withFields(entry, kept)
    })
  const mine = minus(new Set([...decodeFields(own?.fieldsV1), ...changed]), removed)
  object.metadata.managedFields = [...others, ...newEntry(writer, mine)]
}

/** After an apply: the writer owns exactly what it applied; who had a field with another value loses it. */
export function trackApply(
  object: KubeObject,
  old: KubeObject,
  applied: FieldSet,
  definition: Definition | undefined,
  writer: Writer,
): void {
  const { changed, removed } = difference(old, object, definition)
  const entries = object.metadata.managedFields ?? []
  const own = entries.find((entry) => isOf(entry, writer))
  const mine = new Set(applied.keys())
  const others = entries
    .filter((entry) => entry !== own)
    .flatMap((entry) => withFields(entry, minus(decodeFields(entry.fieldsV1), changed, removed)))
  const unchanged = own && changed.size + removed.size === 0 && equal(own.fieldsV1, encodeFields(mine))
  object.metadata.managedFields = [...others, ...(unchanged ? [own] : newEntry(writer, mine))]
}

export interface FieldConflict {
  manager: string
  apiVersion: string
  path: string
}

/** The applied fields that others own with another value. */
export function conflictsOf(
  live: KubeObject,
  applied: FieldSet,
  definition: Definition | undefined,
  writer: Writer,
): FieldConflict[] {
  const current = fieldsOf(live as JsonObject, definition, false)
  const differing = [...applied].filter(([path, value]) => !current.has(path) || !equal(current.get(path), value))
  return (live.metadata.managedFields ?? [])
    .filter((entry) => !isOf(entry, writer))
    .flatMap((entry) => {
      const owned = decodeFields(entry.fieldsV1)
      const { manager, apiVersion = '' } = entry
      return differing.filter(([path]) => owned.has(path)).map(([path]) => ({ manager, apiVersion, path }))
    })
}

/** The fields the writer applied last time. */
export const lastApplied = (live: KubeObject, writer: Writer): Set<string> =>
  decodeFields(live.metadata.managedFields?.find((entry) => isOf(entry, writer))?.fieldsV1)

export const ownedByOthers = (live: KubeObject, writer: Writer): Set<string> =>
  new Set(
    (live.metadata.managedFields ?? [])
      .filter((entry) => !isOf(entry, writer))
      .flatMap((entry) => [...decodeFields(entry.fieldsV1)]),
  )
