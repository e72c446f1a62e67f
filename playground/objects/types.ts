/** What every object of the API has. Kind-specific fields are read through the interfaces of `kinds.ts`. */
export interface KubeObject {
  apiVersion: string
  kind: string
  metadata: ObjectMeta
  [field: string]: unknown
}

/** JSON has no `undefined`; setting a field to it removes the field from the wire. */
export type Optional<T> = { [Key in keyof T]?: T[Key] | undefined }

export interface ObjectMeta
  extends Optional<{
    generateName: string
    namespace: string
    uid: string
    resourceVersion: string
    generation: number
    creationTimestamp: string | null
    deletionTimestamp: string
    deletionGracePeriodSeconds: number
    labels: Record<string, string>
    annotations: Record<string, string>
    finalizers: string[]
    ownerReferences: OwnerReference[]
    managedFields: ManagedFieldsEntry[]
  }> {
  name: string
}

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

/** A set of fields as the API server writes it: `{"f:spec": {"f:type": {}}}`. */
export interface FieldsV1 {
  [element: string]: FieldsV1
}

export interface ManagedFieldsEntry
  extends Optional<{ subresource: string; time: string; fieldsType: string; fieldsV1: FieldsV1; apiVersion: string }> {
  manager: string
  operation: 'Apply' | 'Update'
}

export type JsonObject = Record<string, unknown>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The key of an object in the store. */
export const keyOf = (namespace: string | undefined, name: string): string =>
  namespace ? `${namespace}/${name}` : name
