import type { Kind } from '../kinds/kind.js'
import type { KubeObject } from '../objects/types.js'

export type IncludeObject = 'None' | 'Metadata' | 'Object'

/** An object reduced to its metadata. */
export const partialOf = ({ metadata }: Readonly<KubeObject>) => ({
  kind: 'PartialObjectMetadata',
  apiVersion: 'meta.k8s.io/v1',
  metadata,
})

const columnsOf = (kind: Kind) =>
  kind.columns.map(({ name, type = 'string', format = '', description, priority = 0 }) => ({
    name,
    type,
    format,
    description,
    priority,
  }))

export function rowOf(kind: Kind, object: Readonly<KubeObject>, include: IncludeObject, now = Date.now()) {
  const cells = kind.row(object as KubeObject, now)
  if (include === 'None') return { cells, object: null }
  return { cells, object: include === 'Object' ? object : partialOf(object) }
}

/** `meta.k8s.io/v1 Table`: what `kubectl get` shows. */
export const tableOf = (kind: Kind, metadata: object, rows: readonly unknown[]) => ({
  kind: 'Table',
  apiVersion: 'meta.k8s.io/v1',
  metadata,
  columnDefinitions: columnsOf(kind),
  rows,
})
