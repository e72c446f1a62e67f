import { equal } from '../objects/json.js'
import type { ConfigMap, Secret, ServiceAccount } from '../objects/kinds.js'
import { age } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import type { Cause } from '../status/status.js'
import { forbiddenValue, invalidValue } from '../validation/causes.js'
import { ageColumn, defineKind, nameColumn } from './kind.js'

// Kinds that often stand in one file with a Deployment and a Service. They are stored and watched; the playground's pods do not use them.

const dataColumn = { name: 'Data', description: 'The number of entries.' }
const size = (entries: object | undefined) => Object.keys(entries ?? {}).length

const keyRule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
const checkKeys = (field: string, entries: object | undefined): Cause[] =>
  Object.keys(entries ?? {})
    .filter((key) => !/^[-._a-zA-Z0-9]{1,253}$/.test(key))
    .map((key) => invalidValue(`${field}[${key}]`, key, keyRule))

const isBase64 = (text: string) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
const checkBase64 = (field: string, entries: Readonly<Record<string, string>> | undefined): Cause[] =>
  Object.entries(entries ?? {})
    .filter(([, text]) => !isBase64(text))
    .map(([key, text]) => invalidValue(`${field}[${key}]`, text, 'illegal base64 data'))

function checkImmutable(object: KubeObject, old: KubeObject | undefined, fields: readonly string[]): Cause[] {
  if (old?.immutable !== true) return []
  return fields
    .filter((field) => !equal(object[field], old[field]))
    .map((field) => forbiddenValue(field, 'field is immutable when `immutable` is set'))
}

export const configMapKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  singular: 'configmap',
  shortNames: ['cm'],
  namespaced: true,
  type: 'io.k8s.api.core.v1.ConfigMap',
  nameRule: 'subdomain',
  columns: [nameColumn, dataColumn, ageColumn],
  row: (object, now) => {
    const { metadata, data, binaryData } = object as ConfigMap
    return [metadata.name, size(data) + size(binaryData), age(metadata.creationTimestamp, now)]
  },
  strategy: {
    validate: (object, old) => {
      const { data, binaryData } = object as ConfigMap
      return [
        ...checkKeys('data', data),
        ...checkKeys('binaryData', binaryData),
        ...checkBase64('binaryData', binaryData),
        ...checkImmutable(object, old, ['data', 'binaryData', 'immutable']),
      ]
    },
  },
})

/** What was written as text is kept as base64, as everything in a Secret. */
function prepareSecret(object: KubeObject): void {
  const secret = object as Secret
  for (const [key, text] of Object.entries(secret.stringData ?? {})) {
    secret.data = { ...secret.data, [key]: Buffer.from(text).toString('base64') }
  }
  delete secret.stringData
  secret.type ||= 'Opaque'
}

export const secretKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  singular: 'secret',
  namespaced: true,
  type: 'io.k8s.api.core.v1.Secret',
  nameRule: 'subdomain',
  columns: [nameColumn, { name: 'Type', description: 'What the data is for.' }, dataColumn, ageColumn],
  row: (object, now) => {
    const { metadata, type, data } = object as Secret
    return [metadata.name, type, size(data), age(metadata.creationTimestamp, now)]
  },
  fields: { type: (object) => (object as Secret).type ?? '' },
  strategy: {
    prepare: prepareSecret,
    validate: (object, old) => {
      const { data, type } = object as Secret
      const before = (old as Secret | undefined)?.type
      return [
        ...checkKeys('data', data),
        ...checkBase64('data', data),
        ...checkImmutable(object, old, ['data', 'immutable']),
        ...(before !== undefined && before !== type ? [invalidValue('type', type, 'field is immutable')] : []),
      ]
    },
  },
})

export const serviceAccountKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  namespaced: true,
  type: 'io.k8s.api.core.v1.ServiceAccount',
  nameRule: 'subdomain',
  columns: [nameColumn, { name: 'Secrets', description: 'The number of Secrets.' }, ageColumn],
  row: (object, now) => {
    const { metadata, secrets } = object as ServiceAccount
    return [metadata.name, size(secrets), age(metadata.creationTimestamp, now)]
  },
  strategy: {},
})
