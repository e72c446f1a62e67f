import { parseCidr } from '@kpng/api'
import { equal } from '../objects/json.js'
import type { Namespace, ServiceCidr } from '../objects/kinds.js'
import { age } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import type { Cause } from '../status/status.js'
import { invalidValue, requiredValue } from '../validation/causes.js'
import { checkCidr, checkEach } from '../validation/names.js'
import { ageColumn, defineKind, nameColumn } from './kind.js'

const immortal = new Set(['default', 'kube-system'])

export const namespaceKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  namespaced: false,
  type: 'io.k8s.api.core.v1.Namespace',
  nameRule: 'label',
  hasStatus: true,
  columns: [nameColumn, { name: 'Status', description: 'Active or Terminating.' }, ageColumn],
  row: (object, now) => [
    object.metadata.name,
    (object as Namespace).status?.phase ?? '',
    age(object.metadata.creationTimestamp, now),
  ],
  fields: { 'status.phase': (object) => (object as Namespace).status?.phase ?? '' },
  strategy: {
    prepare: (object, old) => {
      const namespace = object as Namespace
      // The label lets selectors name a namespace; the finalizer keeps it until its objects are gone.
      const { name, labels } = namespace.metadata
      if (name) namespace.metadata.labels = { ...labels, 'kubernetes.io/metadata.name': name }
      namespace.spec = old ? (old as Namespace).spec : { finalizers: ['kubernetes'] }
      namespace.status ??= {}
      namespace.status.phase = namespace.metadata.deletionTimestamp ? 'Terminating' : 'Active'
    },
    refuseDeletion: ({ metadata }) => (immortal.has(metadata.name) ? 'this namespace may not be deleted' : undefined),
  },
})

function validateServiceCidr(object: KubeObject, before?: KubeObject): Cause[] {
  const cidrs = (object as ServiceCidr).spec?.cidrs ?? []
  const causes: Cause[] = []
  if (cidrs.length === 0) causes.push(requiredValue('spec.cidrs', 'at least one CIDR required'))
  if (cidrs.length > 2) causes.push(invalidValue('spec.cidrs', cidrs, 'may only hold up to 2 values'))
  causes.push(...checkEach('spec.cidrs', cidrs, checkCidr))
  const [first, second] = cidrs.map(parseCidr)
  if (cidrs.length === 2 && first && first.family === second?.family) {
    causes.push(invalidValue('spec.cidrs', cidrs, 'may specify no more than one IP for each IP family'))
  }
  const old = before as ServiceCidr | undefined
  if (old && !equal(old.spec.cidrs, cidrs)) causes.push(invalidValue('spec.cidrs', cidrs, 'field is immutable'))
  return causes
}

/** The protection that keeps a range while Services have addresses of it. */
export const serviceCidrFinalizer = 'networking.k8s.io/service-cidr-finalizer'

export const serviceCidrKind = defineKind({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'ServiceCIDR',
  plural: 'servicecidrs',
  singular: 'servicecidr',
  namespaced: false,
  type: 'io.k8s.api.networking.v1.ServiceCIDR',
  nameRule: 'subdomain',
  hasStatus: true,
  columns: [nameColumn, { name: 'CIDRs', description: 'The ranges.' }, ageColumn],
  row: (object, now) => [
    object.metadata.name,
    ((object as ServiceCidr).spec.cidrs ?? []).join(','),
    age(object.metadata.creationTimestamp, now),
  ],
  strategy: {
    prepare: (object, old) => {
      if (!old) object.metadata.finalizers = [...new Set([...(object.metadata.finalizers ?? []), serviceCidrFinalizer])]
    },
    validate: validateServiceCidr,
  },
})
