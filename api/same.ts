/** Whether two values of plain data say the same: messages, lists, maps, sets and bytes. A field that is undefined is not the same as a missing one. */
export function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (isList(a) || isList(b)) {
    if (Array.isArray(a) !== Array.isArray(b)) return false
    return isList(a) && isList(b) && a.length === b.length && a.every((item, index) => isSame(item, b[index]))
  }
  if (a instanceof Map || b instanceof Map) {
    if (!(a instanceof Map && b instanceof Map && a.size === b.size)) return false
    return [...a].every(([key, value]) => b.has(key) && isSame(value, b.get(key)))
  }
  if (a instanceof Set || b instanceof Set) {
    return a instanceof Set && b instanceof Set && a.size === b.size && [...a].every((item) => b.has(item))
  }
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((key) => Object.hasOwn(b, key) && isSame(a[key as never], b[key as never]))
}

const isList = (value: object): value is readonly unknown[] => Array.isArray(value) || value instanceof Uint8Array
