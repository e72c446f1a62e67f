import { equal } from '../objects/json.js'
import type { Deployment } from '../objects/kinds.js'
import { age } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import { labelsText, matchesAll } from '../selectors/labels.js'
import type { Cause } from '../status/status.js'
import { invalidValue, requiredValue } from '../validation/causes.js'
import { ageColumn, defineKind, nameColumn } from './kind.js'

function row(object: KubeObject, now: number): unknown[] {
  const { metadata, spec, status } = object as Deployment
  const containers = spec.template?.spec?.containers ?? []
  return [
    metadata.name,
    `${status?.readyReplicas ?? 0}/${spec.replicas ?? 1}`,
    status?.updatedReplicas ?? 0,
    status?.availableReplicas ?? 0,
    age(metadata.creationTimestamp, now),
    containers.map(({ name }) => name).join(','),
    containers.map(({ image }) => image).join(','),
    labelsText(spec.selector?.matchLabels),
  ]
}

function validate(object: KubeObject, before?: KubeObject): Cause[] {
  const { spec } = object as Deployment
  const causes: Cause[] = []
  const selector = spec.selector?.matchLabels ?? {}
  if (Object.keys(selector).length === 0) causes.push(requiredValue('spec.selector'))
  const labels = spec.template?.metadata?.labels ?? {}
  if (!matchesAll(selector, labels)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'))
  }
  if ((spec.replicas ?? 1) < 0) {
    causes.push(invalidValue('spec.replicas', spec.replicas, 'must be greater than or equal to 0'))
  }
  if ((spec.template?.spec?.containers ?? []).length === 0) causes.push(requiredValue('spec.template.spec.containers'))
  const old = before as Deployment | undefined
  if (old && !equal(old.spec.selector, spec.selector)) {
    causes.push(invalidValue('spec.selector', spec.selector, 'field is immutable'))
  }
  return causes
}

export const deploymentKind = defineKind({
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  singular: 'deployment',
  shortNames: ['deploy'],
  categories: ['all'],
  namespaced: true,
  type: 'io.k8s.api.apps.v1.Deployment',
  nameRule: 'subdomain',
  hasStatus: true,
  hasScale: true,
  countsGenerations: true,
  columns: [
    nameColumn,
    { name: 'Ready', description: 'Pods that are ready, of those wanted.' },
    { name: 'Up-to-date', type: 'integer', description: 'Pods that match the template.' },
    { name: 'Available', type: 'integer', description: 'Pods that are available.' },
    ageColumn,
    { name: 'Containers', priority: 1, description: 'Names of the containers.' },
    { name: 'Images', priority: 1, description: 'Images of the containers.' },
    { name: 'Selector', priority: 1, description: 'Labels of the pods.' },
  ],
  row,
  strategy: {
    prepare: (object) => {
      const deployment = object as Deployment
      deployment.spec ??= {}
      const { spec } = deployment
      spec.replicas ??= 1
      spec.strategy ??= { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } }
    },
    validate,
  },
})
