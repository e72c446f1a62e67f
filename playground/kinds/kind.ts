import type { KubeObject } from '../objects/types.js'
import { metadataFields, type SelectableFields } from '../selectors/fields.js'
import type { Cause, ResourceName } from '../status/status.js'
import type { NameRule } from '../validation/names.js'

export interface Column {
  name: string
  type?: string
  format?: string
  /** 1: only in `kubectl get -o wide`. */
  priority?: number
  description: string
}

/** What makes a kind behave as it does. All are pure on the object; they run between decoding and storing. */
interface Strategy {
  /** Fills in what the writer left out. `old` is the stored object of an update. */
  prepare?(object: KubeObject, old?: KubeObject): void
  validate?(object: KubeObject, old?: KubeObject): Cause[]
  /** Takes addresses, ports …; runs after `validate`, in the same turn as the write. */
  allocate?(object: KubeObject, old?: KubeObject): Cause[]
  /** A deletion that is not allowed: why. */
  refuseDeletion?(object: KubeObject): string | undefined
  /** Seconds an object may take to end after its deletion was asked for. Absent: it goes at once. */
  gracePeriodSeconds?(object: KubeObject): number
}

export interface Kind extends ResourceName {
  version: string
  singular: string
  shortNames: readonly string[]
  categories: readonly string[]
  namespaced: boolean
  /** Full name of its type in the schema. */
  type: string
  nameRule: NameRule
  hasStatus: boolean
  hasScale: boolean
  /** `metadata.generation` counts changes of everything but metadata and status, as for kinds with a desired state. */
  countsGenerations: boolean
  columns: readonly Column[]
  row(object: KubeObject, now: number): unknown[]
  fields: SelectableFields
  strategy: Strategy
  /** A second version of a kind that is stored as another one (events.k8s.io/v1 Event is a v1 Event). */
  storedAs?: { resource: string; toStored(object: KubeObject): KubeObject; fromStored(object: KubeObject): KubeObject }
}

export const allVerbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const

export const nameColumn: Column = { name: 'Name', format: 'name', description: 'The name, unique in its namespace.' }
export const ageColumn: Column = { name: 'Age', description: 'How long ago the object was created.' }

type Partly = Omit<Kind, 'shortNames' | 'categories' | 'fields' | 'hasStatus' | 'hasScale' | 'countsGenerations'>
type Rest = Partial<Pick<Kind, 'shortNames' | 'categories' | 'fields' | 'hasStatus' | 'hasScale' | 'countsGenerations'>>

export const defineKind = (kind: Partly & Rest): Kind => ({
  shortNames: [],
  categories: [],
  hasStatus: false,
  hasScale: false,
  countsGenerations: false,
  ...kind,
  fields: { ...metadataFields, ...kind.fields },
})

export const apiVersionOf = (kind: Pick<Kind, 'group' | 'version'>): string =>
  kind.group === '' ? kind.version : `${kind.group}/${kind.version}`

/** The name under which the store keeps a kind's objects. */
export const resourceOf = (kind: Kind): string =>
  kind.storedAs?.resource ?? (kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`)
