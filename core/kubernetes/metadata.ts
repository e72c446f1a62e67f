import { nameProblem } from '@kpng/api'
import { type Fields, fieldsOf, isFields, type Report, shown, textMapOf } from './fields.js'

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
