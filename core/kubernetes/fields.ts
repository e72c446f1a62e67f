// Reads values of unknown type. A field of the wrong type is reported and counts as absent: one bad field never costs more
// than itself. The path of a field is built only if there is something to report, because this runs for every endpoint.

export type Report = (reason: string) => void
export type Fields = Readonly<Record<string, unknown>>
/** Where a value stands, for instance `'endpoints', 3, 'nodeName'`. */
export type Place = readonly (string | number)[]

const noFields: Fields = Object.freeze({})
const emptyList: readonly unknown[] = Object.freeze([])

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** `endpoints[3].nodeName` */
export function pathOf(place: Place): string {
  return place.reduce<string>((path, step) => {
    if (typeof step === 'number') return `${path}[${step}]`
    return path === '' ? step : `${path}.${step}`
  }, '')
}

/** A value as text for a sentence. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (isFields(value)) return 'a map'
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 80 ? `${text.slice(0, 77)}…"` : text
}

const wrongType = (value: unknown, expected: string, report: Report, place: Place): void =>
  report(`${pathOf(place)} is ${shown(value)}; ${expected} was expected. It is ignored.`)

export function fieldsOf(value: unknown, report: Report, ...place: Place): Fields {
  if (isFields(value)) return value
  if (value !== undefined && value !== null) wrongType(value, 'a map', report, place)
  return noFields
}

export function listOf(value: unknown, report: Report, ...place: Place): readonly unknown[] {
  if (Array.isArray(value)) return value
  if (value !== undefined && value !== null) wrongType(value, 'a list', report, place)
  return emptyList
}

export function textOf(value: unknown, report: Report, ...place: Place): string {
  if (typeof value === 'string') return value
  if (value !== undefined && value !== null) wrongType(value, 'a text', report, place)
  return ''
}

export function flagOf(value: unknown, report: Report, ...place: Place): boolean | undefined {
  if (typeof value === 'boolean') return value
  if (value !== undefined && value !== null) wrongType(value, 'true or false', report, place)
  return undefined
}

/** A list of texts. Items of another type are reported and left out. */
export function textsOf(value: unknown, report: Report, ...place: Place): string[] {
  return listOf(value, report, ...place)
    .map((item, index) => textOf(item, report, ...place, index))
    .filter((text) => text !== '')
}

/** Labels or annotations. */
export function textMapOf(value: unknown, report: Report, ...place: Place): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [key, item] of Object.entries(fieldsOf(value, report, ...place))) {
    if (typeof item === 'string') texts[key] = item
    else wrongType(item, 'a text (in YAML: put it in quotes)', report, [...place, key])
  }
  return texts
}
