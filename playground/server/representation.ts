import { apiVersionOf, type Kind } from '../kinds/kind.js'
import type { KubeObject } from '../objects/types.js'
import { notAcceptable } from '../status/status.js'
import { kindFirst, Stored } from '../storage/store.js'

export interface ListMeta {
  resourceVersion: string
  continue?: string
  remainingItemCount?: number
}

/** How a client wants its objects. `id` names the form, so that what was encoded once can be found again. */
export interface Representation {
  readonly id: string
  object(stored: Stored): string
  /** The text before, between and after the items of a list; items are encoded one by one. */
  list(meta: ListMeta): { head: string; tail: string }
  item(stored: Stored): string
  bookmark(metadata: object): string
}

export type IncludeObject = 'None' | 'Metadata' | 'Object'

interface Accepted {
  type: string
  as: string
  version: string
}

/** The ranges of an Accept header, in order. kubectl lists the forms it prefers first. */
function parseAccept(header: string): Accepted[] {
  return header.split(',').map((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim())
    const fields = new Map(parameters.map((parameter) => parameter.split('=') as [string, string]))
    return { type, as: fields.get('as') ?? '', version: fields.get('v') ?? '' }
  })
}

const json = new Set(['application/json', '*/*', 'application/*', ''])

export function representationFor(kind: Kind, accept: string, include: IncludeObject): Representation {
  for (const { type, as, version } of parseAccept(accept)) {
    if (!json.has(type)) continue
    if (as === '') return plain(kind)
    if (as === 'Table' && version === 'v1') return table(kind, include)
    if (as.startsWith('PartialObjectMetadata') && version === 'v1') return partial()
  }
  throw notAcceptable(['application/json', 'application/json;stream=watch'])
}

/** Stored as core/v1, asked for as events.k8s.io/v1: converted once. */
const converted = new WeakMap<Stored, Stored>()
function inVersion(kind: Kind, stored: Stored): Stored {
  if (!kind.storedAs) return stored
  let other = converted.get(stored)
  if (!other) {
    const object = kindFirst(kind.storedAs.fromStored(stored.object as KubeObject))
    other = new Stored(stored.key, stored.revision, object)
    converted.set(stored, other)
  }
  return other
}

const listText = (kind: string, apiVersion: string, metadata: ListMeta) => ({
  head: `${JSON.stringify({ kind, apiVersion, metadata }).slice(0, -1)},"items":[`,
  tail: ']}\n',
})

function plain(kind: Kind): Representation {
  const apiVersion = apiVersionOf(kind)
  return {
    id: apiVersion,
    object: (stored) => inVersion(kind, stored).json,
    item: (stored) => inVersion(kind, stored).itemJson,
    list: (meta) => listText(`${kind.kind}List`, apiVersion, meta),
    bookmark: (metadata) => JSON.stringify({ kind: kind.kind, apiVersion, metadata }),
  }
}

/** An object reduced to its metadata. */
const partialOf = ({ metadata }: Readonly<KubeObject>) => ({
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

function rowOf(kind: Kind, object: Readonly<KubeObject>, include: IncludeObject) {
  const cells = kind.row(object as KubeObject, Date.now())
  if (include === 'None') return { cells, object: null }
  return { cells, object: include === 'Object' ? object : partialOf(object) }
}

/** `meta.k8s.io/v1 Table`: what `kubectl get` shows. */
const tableOf = (kind: Kind, metadata: object, rows: readonly unknown[]) => ({
  kind: 'Table',
  apiVersion: 'meta.k8s.io/v1',
  metadata,
  columnDefinitions: columnsOf(kind),
  rows,
})

function table(kind: Kind, include: IncludeObject): Representation {
  const row = (stored: Stored) => rowOf(kind, stored.object, include)
  return {
    id: `table ${include}`,
    object: (stored) => JSON.stringify(tableOf(kind, { resourceVersion: String(stored.revision) }, [row(stored)])),
    item: (stored) => JSON.stringify(row(stored)),
    list: (meta) => ({ head: JSON.stringify(tableOf(kind, meta, [])).slice(0, -2), tail: ']}\n' }),
    bookmark: (metadata) => {
      const object = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata }
      return JSON.stringify(tableOf(kind, metadata, [{ cells: kind.columns.map(() => ''), object }]))
    },
  }
}

function partial(): Representation {
  const apiVersion = 'meta.k8s.io/v1'
  return {
    id: 'partial',
    object: (stored) => JSON.stringify(partialOf(stored.object)),
    item: (stored) => JSON.stringify(partialOf(stored.object)),
    list: (meta) => listText('PartialObjectMetadataList', apiVersion, meta),
    bookmark: (metadata) => JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion, metadata }),
  }
}
