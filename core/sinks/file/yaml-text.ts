// Writes the few kinds of scalars that a state file has so that YAML 1.1 readers (Go's yaml.v2) and YAML 1.2 readers agree on them. A
// text is written without quotes only if no reader could take it for anything else.

const plain = /^(?:[a-z][a-z0-9]*(?:[-._/][a-z0-9]+)*|\d{1,3}(?:\.\d{1,3}){3})$/i
const words = new Set(['null', 'true', 'false', 'yes', 'no', 'on', 'off', 'y', 'n'])
/** Characters that must be escaped in YAML but not in JSON. */
const unprintable = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g

export function textOf(value: string): string {
  if (plain.test(value) && !words.has(value.toLowerCase())) return value
  return JSON.stringify(value).replace(unprintable, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** `key: []`, or the key and one line per item. */
export function listOf(indent: string, key: string, values: readonly string[]): string {
  if (values.length === 0) return `${indent}${key}: []\n`
  return `${indent}${key}:\n${values.map((value) => `${indent}- ${textOf(value)}\n`).join('')}`
}

/** `key: {}`, or the key and one line per entry, sorted. */
export function mapOf(indent: string, key: string, values: Readonly<Record<string, string>>): string {
  const names = Object.keys(values).sort()
  if (names.length === 0) return `${indent}${key}: {}\n`
  const lines = names.map((name) => `${indent}  ${textOf(name)}: ${textOf(values[name] ?? '')}\n`)
  return `${indent}${key}:\n${lines.join('')}`
}
