import { equal } from '../objects/json.js'
import type { Pod } from '../objects/kinds.js'
import { age } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import { checkPortName } from '../services/validate.js'
import type { Cause } from '../status/status.js'
import { duplicateValue, forbiddenValue, requiredValue } from '../validation/causes.js'
import { checkName, checkPort } from '../validation/names.js'
import { ageColumn, type Column, defineKind, nameColumn } from './kind.js'

function shownStatus({ metadata, status = {} }: Pod): string {
  if (metadata.deletionTimestamp) return 'Terminating'
  return status.reason || status.phase || 'Unknown'
}

function row(object: KubeObject, now: number): unknown[] {
  const pod = object as Pod
  const statuses = pod.status?.containerStatuses ?? []
  const ready = `${statuses.filter((status) => status.ready).length}/${pod.spec.containers?.length ?? 0}`
  const restarts = String(statuses.reduce((sum, { restartCount }) => sum + restartCount, 0))
  const address = pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? '<none>'
  const created = age(pod.metadata.creationTimestamp, now)
  const node = pod.spec.nodeName || '<none>'
  return [pod.metadata.name, ready, shownStatus(pod), restarts, created, address, node, '<none>', gates(pod)]
}

function gates({ spec, status }: Pod): string {
  const wanted = spec.readinessGates ?? []
  if (wanted.length === 0) return '<none>'
  const isTrue = (type: string) => status?.conditions?.some((item) => item.type === type && item.status === 'True')
  return `${wanted.filter(({ conditionType }) => isTrue(conditionType)).length}/${wanted.length}`
}

/** What a pod has when its writer did not say. */
function prepare(object: KubeObject, old?: KubeObject): void {
  const pod = object as Pod
  pod.spec ??= {}
  const spec = pod.spec as Record<string, unknown>
  const defaults = {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 30,
    dnsPolicy: 'ClusterFirst',
    securityContext: {},
    schedulerName: 'default-scheduler',
    enableServiceLinks: true,
  }
  for (const [name, value] of Object.entries(defaults)) spec[name] ??= value
  for (const container of pod.spec.containers ?? []) {
    const fields = container as unknown as Record<string, unknown>
    fields.terminationMessagePath ??= '/dev/termination-log'
    fields.terminationMessagePolicy ??= 'File'
    fields.imagePullPolicy ??=
      /:[^/]+$/.test(container.image ?? '') && !container.image?.endsWith(':latest') ? 'IfNotPresent' : 'Always'
    fields.resources ??= {}
    for (const port of container.ports ?? []) port.protocol ??= 'TCP'
  }
  if (!old) pod.status = { phase: 'Pending', qosClass: 'BestEffort' }
}

function validate(object: KubeObject, before?: KubeObject): Cause[] {
  const pod = object as Pod
  const causes: Cause[] = []
  const containers = pod.spec.containers ?? []
  if (containers.length === 0) causes.push(requiredValue('spec.containers'))
  const names = new Set<string>()
  for (const [index, container] of containers.entries()) {
    const at = `spec.containers[${index}]`
    if (!container.name) causes.push(requiredValue(`${at}.name`))
    else causes.push(...checkName(`${at}.name`, 'label', container.name))
    if (names.has(container.name)) causes.push(duplicateValue(`${at}.name`, container.name))
    names.add(container.name)
    if (!container.image) causes.push(requiredValue(`${at}.image`))
    for (const [position, port] of (container.ports ?? []).entries()) {
      causes.push(...checkPort(`${at}.ports[${position}].containerPort`, port.containerPort))
      if (port.name) causes.push(...checkPortName(`${at}.ports[${position}].name`, port.name))
    }
  }
  if (before) causes.push(...checkChange(pod, before as Pod))
  return causes
}

function checkChange(pod: Pod, old: Pod): Cause[] {
  const fixed = ({ spec }: Pod) => ({
    ...spec,
    nodeName: undefined,
    tolerations: undefined,
    terminationGracePeriodSeconds: undefined,
    activeDeadlineSeconds: undefined,
    containers: spec.containers?.map((container) => ({ ...container, image: undefined })),
  })
  const boundElsewhere = old.spec.nodeName && old.spec.nodeName !== pod.spec.nodeName
  if (equal(fixed(pod), fixed(old)) && !boundElsewhere) return []
  const why =
    'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'
  return [forbiddenValue('spec', why)]
}

/** The columns that `get pods` has, the wide ones last. */
const columns: readonly Column[] = [
  nameColumn,
  { name: 'Ready', description: 'Containers that are ready, of all.' },
  { name: 'Status', description: 'Where the pod is in its life.' },
  { name: 'Restarts', description: 'How often its containers were restarted.' },
  ageColumn,
  { name: 'IP', priority: 1, description: 'Its address.' },
  { name: 'Node', priority: 1, description: 'Its node.' },
  { name: 'Nominated Node', priority: 1, description: 'The node it may get by preemption.' },
  { name: 'Readiness Gates', priority: 1, description: 'Further conditions of its readiness.' },
]

export const podKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  singular: 'pod',
  shortNames: ['po'],
  categories: ['all'],
  namespaced: true,
  type: 'io.k8s.api.core.v1.Pod',
  nameRule: 'subdomain',
  hasStatus: true,
  countsGenerations: true,
  columns,
  row,
  fields: {
    'spec.nodeName': (object) => (object as Pod).spec.nodeName ?? '',
    'spec.restartPolicy': (object) =>
      String((object as Pod & { spec: { restartPolicy?: string } }).spec.restartPolicy ?? ''),
    'status.phase': (object) => (object as Pod).status?.phase ?? '',
    'status.podIP': (object) => (object as Pod).status?.podIP ?? '',
  },
  strategy: {
    prepare,
    validate,
    gracePeriodSeconds: (object) => (object as Pod).spec.terminationGracePeriodSeconds ?? 30,
  },
})
