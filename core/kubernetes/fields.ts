import { localv1, nameProblem } from '@kpng/api'

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

/** What kpng reads of an object's metadata. */
export interface Metadata {
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly deleting: boolean
}

export interface ReadObject {
  readonly object: Fields
  readonly metadata: Metadata
}

/**
 * The object and its metadata. Without a usable name it returns undefined and reports why. A missing namespace is `default`,
 * because people leave it out of manifests; the API server always sends one, which the kube source checks.
 */
export function readObject(object: unknown, report: Report): ReadObject | undefined {
  if (!isFields(object)) {
    report(`It is ${shown(object)}; an object was expected. It is left out.`)
    return undefined
  }
  const metadata = fieldsOf(object.metadata, report, 'metadata')
  const name = usableName(metadata.name, 'metadata.name', report)
  const namespace = usableName(metadata.namespace ?? 'default', 'metadata.namespace', report)
  if (name === undefined || namespace === undefined) return undefined
  return {
    object,
    metadata: {
      name,
      namespace,
      labels: textMapOf(metadata.labels, report, 'metadata', 'labels'),
      annotations: textMapOf(metadata.annotations, report, 'metadata', 'annotations'),
      deleting: metadata.deletionTimestamp !== undefined && metadata.deletionTimestamp !== null,
    },
  }
}

function usableName(value: unknown, field: string, report: Report): string | undefined {
  const problem = typeof value === 'string' ? nameProblem(value) : 'it is missing or not a text'
  if (problem === undefined) return value as string
  report(`${field} is ${shown(value)}, which cannot be a name: ${problem}. The object is left out.`)
  return undefined
}

/** The labels of an object that has not been checked yet, to decide whether this proxy takes it at all. */
export function labelsOf(object: unknown): Fields {
  const metadata = isFields(object) ? object.metadata : undefined
  const labels = isFields(metadata) ? metadata.labels : undefined
  return isFields(labels) ? labels : {}
}

const protocols = new Map<unknown, localv1.Protocol>([
  ['TCP', localv1.Protocol.TCP],
  ['UDP', localv1.Protocol.UDP],
  ['SCTP', localv1.Protocol.SCTP],
])

/** The protocol of that name; a missing one is TCP, as the API server fills it in. Undefined if there is no such protocol. */
export const protocolOf = (name: unknown): localv1.Protocol | undefined => protocols.get(name ?? 'TCP')
