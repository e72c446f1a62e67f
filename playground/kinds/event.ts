import type { KubeEvent } from '../objects/kinds.js'
import { age } from '../objects/time.js'
import type { JsonObject, KubeObject } from '../objects/types.js'
import type { Cause } from '../status/status.js'
import { invalidValue } from '../validation/causes.js'
import { defineKind, nameColumn } from './kind.js'

const namespaceOf = (event: KubeEvent) => event.involvedObject?.namespace || 'default'

function row(object: KubeObject, now: number): unknown[] {
  const event = object as KubeEvent
  const first = event.firstTimestamp || event.eventTime || event.metadata.creationTimestamp
  const last = event.series?.lastObservedTime || event.lastTimestamp || first
  const subject = `${(event.involvedObject?.kind ?? '').toLowerCase()}/${event.involvedObject?.name ?? ''}`
  const source = [event.source?.component || event.reportingComponent, event.source?.host].filter(Boolean).join(', ')
  const count = event.series?.count ?? event.count ?? 1
  return [
    age(last, now),
    event.type ?? '',
    event.reason ?? '',
    subject,
    event.involvedObject?.fieldPath ?? '',
    source,
    (event.message ?? '').trim(),
    age(first, now),
    count,
    event.metadata.name,
  ]
}

const reference = (name: string) => (object: KubeObject) => {
  const subject = (object as KubeEvent).involvedObject as Record<string, string | undefined> | undefined
  return subject?.[name] ?? ''
}
const involved = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']

function validate(object: KubeObject): Cause[] {
  const event = object as KubeEvent
  if (namespaceOf(event) === event.metadata.namespace) return []
  return [
    invalidValue('involvedObject.namespace', event.involvedObject?.namespace ?? '', 'does not match event.namespace'),
  ]
}

const common = {
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  namespaced: true,
  nameRule: 'subdomain' as const,
  columns: [
    { name: 'Last Seen', description: 'When it was last seen.' },
    { name: 'Type', description: 'Normal or Warning.' },
    { name: 'Reason', description: 'What happened, in a word.' },
    { name: 'Object', description: 'What it happened to.' },
    { name: 'Subobject', priority: 1, description: 'The part of it.' },
    { name: 'Source', priority: 1, description: 'Who reports it.' },
    { name: 'Message', description: 'What happened.' },
    { name: 'First Seen', priority: 1, description: 'When it was first seen.' },
    { name: 'Count', type: 'integer', priority: 1, description: 'How often it was seen.' },
    { ...nameColumn, priority: 1 },
  ],
  row,
}

export const eventKind = defineKind({
  ...common,
  group: '',
  type: 'io.k8s.api.core.v1.Event',
  fields: {
    ...Object.fromEntries(involved.map((name) => [`involvedObject.${name}`, reference(name)])),
    reason: (object) => (object as KubeEvent).reason ?? '',
    type: (object) => (object as KubeEvent).type ?? '',
    source: (object) => (object as KubeEvent).source?.component ?? (object as KubeEvent).reportingComponent ?? '',
    reportingComponent: (object) => (object as KubeEvent).reportingComponent ?? '',
  },
  strategy: { validate },
})

/** Field names of core/v1 and of events.k8s.io/v1 for the same thing. */
const renamed: readonly [string, string][] = [
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['reportingComponent', 'reportingController'],
  ['source', 'deprecatedSource'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
  ['count', 'deprecatedCount'],
]

function convert(object: KubeObject, apiVersion: string, pairs: readonly [string, string][]): KubeObject {
  const names = new Map(pairs)
  const fields: JsonObject = {}
  for (const [name, value] of Object.entries(object)) fields[names.get(name) ?? name] = value
  return { ...fields, apiVersion, kind: 'Event', metadata: object.metadata }
}

export const newEventKind = defineKind({
  ...common,
  group: 'events.k8s.io',
  // kubectl would warn on each `get ev` that the short name is ambiguous.
  shortNames: [],
  type: 'io.k8s.api.events.v1.Event',
  fields: {
    ...Object.fromEntries(involved.map((name) => [`regarding.${name}`, reference(name)])),
    reason: (object) => (object as KubeEvent).reason ?? '',
    type: (object) => (object as KubeEvent).type ?? '',
    reportingController: (object) => (object as KubeEvent).reportingComponent ?? '',
  },
  strategy: { validate },
  storedAs: {
    resource: 'events',
    toStored: (object) =>
      convert(
        object,
        'v1',
        renamed.map(([core, events]) => [events, core]),
      ),
    fromStored: (object) => convert(object, 'events.k8s.io/v1', renamed),
  },
})
