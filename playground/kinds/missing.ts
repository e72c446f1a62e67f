import type { Pod } from '../objects/kinds.js'
import { StatusError } from '../status/status.js'
import type { Kinds } from './index.js'
import { apiVersionOf } from './kind.js'

// Kinds that every cluster has and the playground lacks. kubectl learns their names from discovery, without any verb, so that it asks
// for them and gets a sentence of ours. It does not list them in `kubectl api-resources`.

export interface MissingKind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly shortNames: readonly string[]
  readonly namespaced: boolean
}

/** By group and version: the kind, `*` if it is not in a namespace, its short names. */
const names: Readonly<Record<string, readonly string[]>> = {
  v1: [
    'PersistentVolumeClaim pvc',
    'PersistentVolume* pv',
    'ReplicationController rc',
    'ResourceQuota quota',
    'LimitRange',
  ],
  'apps/v1': ['StatefulSet sts', 'DaemonSet ds', 'ReplicaSet rs'],
  'batch/v1': ['Job', 'CronJob cj'],
  'networking.k8s.io/v1': ['Ingress ing', 'IngressClass*', 'NetworkPolicy netpol'],
  'autoscaling/v2': ['HorizontalPodAutoscaler hpa'],
  'policy/v1': ['PodDisruptionBudget pdb'],
  'rbac.authorization.k8s.io/v1': ['Role', 'RoleBinding', 'ClusterRole*', 'ClusterRoleBinding*'],
  'storage.k8s.io/v1': ['StorageClass* sc'],
  'scheduling.k8s.io/v1': ['PriorityClass* pc'],
  'apiextensions.k8s.io/v1': ['CustomResourceDefinition* crd crds'],
}

function pluralOf(kind: string): string {
  const word = kind.toLowerCase()
  if (word.endsWith('s')) return `${word}es`
  return word.endsWith('y') ? `${word.slice(0, -1)}ies` : `${word}s`
}

export const missingKinds: readonly MissingKind[] = Object.entries(names).flatMap(([groupVersion, entries]) => {
  const [version = '', group = ''] = groupVersion.split('/').reverse()
  return entries.map((entry) => {
    const [name = '', ...shortNames] = entry.split(' ')
    const kind = name.replace('*', '')
    return { group, version, kind, plural: pluralOf(kind), shortNames, namespaced: kind === name }
  })
})

/** The missing kind that a path of the API is about. */
export function missingKindAt(pathname: string): MissingKind | undefined {
  const path = `${pathname}/`
  return missingKinds.find((kind) => {
    const base = `${kind.group === '' ? '/api' : '/apis'}/${apiVersionOf(kind)}/`
    const rest = path.startsWith(base) ? path.slice(base.length) : undefined
    return rest?.replace(/^namespaces\/[^/]+\//, '').startsWith(`${kind.plural}/`)
  })
}

/** The kinds that people write files of. */
const listOf = ({ all }: Kinds): string => [...new Set(all.map(({ kind }) => kind))].sort().join(', ')

export const onlyTheseKinds = (kinds: Kinds): string => `the playground has only these kinds: ${listOf(kinds)}`

/** Not found, so that kubectl goes on with the other objects of a file. */
export const noSuchKind = ({ kind, plural, group }: MissingKind, kinds: Kinds): StatusError =>
  new StatusError(404, 'NotFound', `the playground has no ${kind}; it has ${listOf(kinds)}`, { group, kind: plural })

const features: Readonly<Record<string, (address: string) => string>> = {
  log: () => 'no pod logs: its pods are not containers but echo servers, which log nothing',
  exec: () => 'no exec: its pods are not containers but echo servers, there is nothing to run a command in',
  attach: () => 'no attach: its pods are not containers but echo servers, there is nothing to attach to',
  portforward: (address) => `no port-forward, and needs none: call the pod itself at http://${address}`,
  ephemeralcontainers: () => 'no ephemeral containers: its pods are not containers but echo servers',
}

/** Something that kubectl does with pods and the playground cannot: what it is, in words. Undefined if it is unknown to kubectl too. */
export function noSuchFeature(subresource: string, { metadata, spec, status }: Pod): StatusError | undefined {
  const port = spec.containers?.flatMap(({ ports = [] }) => ports)[0]?.containerPort ?? 8080
  const sentence = features[subresource]?.(`${status?.podIP ?? metadata.name}:${port}`)
  // kubectl debug reads the details of a refusal without checking that there are any.
  return sentence === undefined
    ? undefined
    : new StatusError(404, 'NotFound', `the playground has ${sentence}`, { kind: 'pods' })
}
