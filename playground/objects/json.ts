import { isObject } from './types.js'

/** A deep copy of JSON data; several times cheaper than `structuredClone`, which must expect anything. */
export function clone<T>(value: T): T {
  if (Array.isArray(value)) return value.map(clone) as T
  if (!isObject(value)) return value
  const copy: Record<string, unknown> = {}
  for (const key of Object.keys(value)) {
    const field = (value as Record<string, unknown>)[key]
    if (field !== undefined) copy[key] = clone(field)
  }
  return copy as T
}

/** Equality of JSON data; a field that is `undefined` equals one that is absent. */
export function equal(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, index) => equal(item, other[index]))
  }
  if (!isObject(one) || !isObject(other)) return false
  const keys = new Set([...Object.keys(one), ...Object.keys(other)])
  for (const key of keys) if (!equal(one[key], other[key])) return false
  return true
}

/** Stored objects are shared by watchers, caches and callers: an accidental write must throw, not corrupt. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const field of Object.values(value)) freeze(field)
  return Object.freeze(value)
}
