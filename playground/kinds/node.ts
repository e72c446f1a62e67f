import type { Node } from '../objects/kinds.js'
import { age } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import type { Cause } from '../status/status.js'
import { forbiddenValue, requiredValue, unsupportedValue } from '../validation/causes.js'
import { checkCidr, checkEach } from '../validation/names.js'
import { ageColumn, defineKind, nameColumn } from './kind.js'

const effects = ['NoExecute', 'NoSchedule', 'PreferNoSchedule']

function status({ spec, status: seen }: Node): string {
  const ready = seen?.conditions?.find(({ type }) => type === 'Ready')
  const words = [ready ? (ready.status === 'True' ? 'Ready' : 'NotReady') : 'Unknown']
  if (spec?.unschedulable) words.push('SchedulingDisabled')
  return words.join(',')
}

function roles({ metadata }: Node): string {
  const prefix = 'node-role.kubernetes.io/'
  const found = Object.keys(metadata.labels ?? {})
    .filter((key) => key.startsWith(prefix))
    .map((key) => key.slice(prefix.length))
  return found.sort().join(',') || '<none>'
}

function row(object: KubeObject, now: number): unknown[] {
  const node = object as Node
  const address = (wanted: string) => node.status?.addresses?.find(({ type }) => type === wanted)?.address ?? '<none>'
  const info = node.status?.nodeInfo ?? {}
  const { name, creationTimestamp } = node.metadata
  return [
    name,
    status(node),
    roles(node),
    age(creationTimestamp, now),
    info.kubeletVersion ?? '',
    address('InternalIP'),
    address('ExternalIP'),
    info.osImage || '<unknown>',
    info.kernelVersion || '<unknown>',
    info.containerRuntimeVersion || '<unknown>',
  ]
}

function validate(object: KubeObject, before?: KubeObject): Cause[] {
  const { spec } = object as Node
  const old = (before as Node | undefined)?.spec
  const causes: Cause[] = []
  for (const [index, taint] of (spec.taints ?? []).entries()) {
    if (!taint.key) causes.push(requiredValue(`spec.taints[${index}].key`))
    if (!effects.includes(taint.effect))
      causes.push(unsupportedValue(`spec.taints[${index}].effect`, taint.effect, effects))
  }
  causes.push(...checkEach('spec.podCIDRs', spec.podCIDRs, checkCidr))
  if (old?.podCIDR && old.podCIDR !== spec.podCIDR) {
    const why = 'node updates may not change podCIDR except from "" to valid'
    causes.push(forbiddenValue('spec.podCIDRs', why))
  }
  return causes
}

export const nodeKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  singular: 'node',
  shortNames: ['no'],
  namespaced: false,
  type: 'io.k8s.api.core.v1.Node',
  nameRule: 'subdomain',
  hasStatus: true,
  columns: [
    nameColumn,
    { name: 'Status', description: 'Whether it is ready.' },
    { name: 'Roles', description: 'What it is used for.' },
    ageColumn,
    { name: 'Version', description: 'The version of its kubelet.' },
    { name: 'Internal-IP', priority: 1, description: 'Its address in the cluster.' },
    { name: 'External-IP', priority: 1, description: 'Its address outside.' },
    { name: 'OS-Image', priority: 1, description: 'Its operating system.' },
    { name: 'Kernel-Version', priority: 1, description: 'Its kernel.' },
    { name: 'Container-Runtime', priority: 1, description: 'Its container runtime.' },
  ],
  row,
  fields: { 'spec.unschedulable': (object) => String((object as Node).spec?.unschedulable ?? false) },
  strategy: {
    prepare: (object) => {
      const node = object as Node
      node.spec ??= {}
      if (node.spec.podCIDR && !node.spec.podCIDRs?.length) node.spec.podCIDRs = [node.spec.podCIDR]
      if (!node.spec.podCIDR && node.spec.podCIDRs?.length) node.spec.podCIDR = node.spec.podCIDRs[0]
    },
    validate,
  },
})
