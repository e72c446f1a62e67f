import { type Family, isName, isPort, nameProblem, parseIp } from '@kpng/api'
import {
  conditionsOf,
  type EndpointPort,
  type EndpointRecord,
  type EndpointSource,
  type Hints,
  isBetter,
  none,
} from '../store/index.js'
import { type Fields, fieldsOf, flagOf, isFields, listOf, type Report, shown, textOf } from './fields.js'
import { readObject } from './metadata.js'
import { protocolOf } from './service-ports.js'

export const serviceNameLabel = 'kubernetes.io/service-name'
const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time'

/** Returns one string for equal texts, so that half a million endpoints share the names of their nodes and zones. */
export type Intern = (text: string) => string

/**
 * Returns one string for equal texts. The names of nodes and zones come with each of half a million endpoints, and would be half a
 * million strings. When the table is larger than any cluster, it forgets everything, which only costs some memory.
 */
export function internTable(maxEntries = 100_000): (text: string) => string {
  const table = new Map<string, string>()
  return (text) => {
    const known = table.get(text)
    if (known !== undefined) return known
    if (table.size >= maxEntries) table.clear()
    table.set(text, text)
    return text
  }
}

/** The endpoints of an EndpointSlice. */
export interface SliceEndpoints extends EndpointSource {
  /** When the change behind this version of the slice began, if the controller says so. */
  readonly triggerUnixMs: number | undefined
}

/**
 * Reads an EndpointSlice. Returns undefined, without a report, for slices that belong to no Service (checklist 4) or hold host
 * names (checklist 6). The records share what is equal in them.
 */
export function endpointsFromKubernetes(object: unknown, report: Report, intern: Intern): SliceEndpoints | undefined {
  const read = readObject(object, report)
  if (!read) return undefined
  const { namespace, name, labels, annotations } = read.metadata
  const service = labels[serviceNameLabel]
  if (service === undefined || service === '') return undefined
  const problem = nameProblem(service)
  if (problem !== undefined) {
    report(
      `The label ${serviceNameLabel} is ${shown(service)}, which cannot be a name: ${problem}. The slice is left out.`,
    )
    return undefined
  }
  const family = familyOfSlice(read.object, report)
  if (!family) return undefined
  const ports = portsOf(read.object, report)
  const items = listOf(read.object.endpoints, report, 'endpoints')
  return {
    namespace,
    name,
    service,
    endpoints: recordsOf(items, family, ports, report, intern),
    triggerUnixMs: triggerOf(annotations[triggerTimeAnnotation], report),
  }
}

function familyOfSlice({ addressType }: Fields, report: Report): Family | undefined {
  if (addressType === 'IPv4' || addressType === 'IPv6') return addressType
  if (addressType !== 'FQDN') {
    report(`addressType is ${shown(addressType)}; IPv4 or IPv6 was expected. The slice is left out.`)
  }
  return undefined
}

/**
 * The ports that all endpoints of the slice serve. A missing name is the empty one, as the API server fills it in. A missing
 * number would mean "all ports", which no Service can ask for (checklist 11).
 */
function portsOf(slice: Fields, report: Report): readonly EndpointPort[] {
  const ports = new Map<string, EndpointPort>()
  for (const [index, item] of listOf(slice.ports, report, 'ports').entries()) {
    const fields = fieldsOf(item, report, 'ports', index)
    const name = textOf(fields.name, report, 'ports', index, 'name')
    const protocol = protocolOf(fields.protocol)
    if (!isPort(fields.port)) {
      const number = fields.port === undefined || fields.port === null ? 'missing' : shown(fields.port)
      report(`ports[${index}].port is ${number}; a port is 1 to 65535. The port is left out.`)
    } else if (protocol === undefined) {
      report(`ports[${index}].protocol is ${shown(fields.protocol)}; TCP, UDP or SCTP was expected. It is left out.`)
    } else if (ports.has(name)) {
      report(`ports[${index}] has the name ${shown(name)} of an earlier port. The port is left out.`)
    } else {
      ports.set(name, Object.freeze({ name, port: fields.port, protocol }))
    }
  }
  return ports.size === 0 ? none : Object.freeze([...ports.values()])
}

function recordsOf(
  items: readonly unknown[],
  family: Family,
  ports: readonly EndpointPort[],
  report: Report,
  intern: Intern,
): readonly EndpointRecord[] {
  const records = new Map<string, EndpointRecord>()
  const hintsOf = hintsReader(report, intern)
  for (let index = 0; index < items.length; index++) {
    const fields = fieldsOf(items[index], report, 'endpoints', index)
    const address = addressOf(fields, family, index, report)
    if (address === undefined) continue
    // This runs for each of half a million endpoints: a field that is a text, or missing, needs no place for a report.
    const text = (field: 'hostname' | 'nodeName' | 'zone') => {
      const value = fields[field]
      if (typeof value === 'string') return value
      return value === undefined ? '' : textOf(value, report, 'endpoints', index, field)
    }
    const record: EndpointRecord = {
      podName: podNameOf(fields.targetRef, index, report),
      hostname: text('hostname'),
      v4: family === 'IPv4' ? [address] : none,
      v6: family === 'IPv6' ? [address] : none,
      ports,
      node: intern(text('nodeName')),
      zone: intern(text('zone')),
      hints: hintsOf(fields.hints, index),
      conditions: readConditions(fields.conditions, index, report),
    }
    const earlier = records.get(address)
    if (!earlier) {
      records.set(address, record)
      continue
    }
    report(`endpoints[${index}] has the address ${address} of an earlier endpoint. One of them is left out.`)
    // A new pod can get an address that a terminating pod still holds (checklist 12).
    if (isBetter(record.conditions, earlier.conditions)) records.set(address, record)
  }
  return records.size === 0 ? none : [...records.values()]
}

/** Only the first address counts, as in kube-proxy: further ones are the same endpoint. */
function addressOf(fields: Fields, family: Family, index: number, report: Report): string | undefined {
  const [first] = listOf(fields.addresses, report, 'endpoints', index, 'addresses')
  const ip = typeof first === 'string' ? parseIp(first) : undefined
  if (ip?.family === family) return ip.text
  const given = first === undefined ? 'missing' : shown(first)
  report(`endpoints[${index}].addresses[0] is ${given}; an ${family} address was expected. The endpoint is left out.`)
  return undefined
}

function podNameOf(targetRef: unknown, index: number, report: Report): string {
  if (!isFields(targetRef) || targetRef.kind !== 'Pod') return ''
  const name = textOf(targetRef.name, report, 'endpoints', index, 'targetRef', 'name')
  if (name === '' || isName(name)) return name
  report(
    `endpoints[${index}].targetRef.name is ${shown(name)}, which cannot be a name: ${nameProblem(name)}. It is ignored.`,
  )
  return ''
}

/** kube-proxy takes a missing `serving` as true, whatever `ready` says (checklist 23). */
function readConditions(value: unknown, index: number, report: Report): EndpointRecord['conditions'] {
  const fields = fieldsOf(value, report, 'endpoints', index, 'conditions')
  const flag = (name: string, missing: boolean): boolean => {
    const given = fields[name]
    if (typeof given === 'boolean') return given
    return (given === undefined ? undefined : flagOf(given, report, 'endpoints', index, 'conditions', name)) ?? missing
  }
  return conditionsOf({
    ready: flag('ready', true),
    serving: flag('serving', true),
    terminating: flag('terminating', false),
  })
}

/** Reads the hints of the endpoints of one slice. Equal hints become one object: a slice has few different ones. */
function hintsReader(report: Report, intern: Intern): (value: unknown, index: number) => Hints | undefined {
  const known = new Map<string, Hints>()

  const namesIn = (value: unknown, index: number, field: string): readonly string[] => {
    const items = listOf(value, report, 'endpoints', index, 'hints', field)
    if (items.length === 0) return none
    const names = items.map((item, at) => {
      const { name } = fieldsOf(item, report, 'endpoints', index, 'hints', field, at)
      return textOf(name, report, 'endpoints', index, 'hints', field, at, 'name')
    })
    return [...new Set(names.filter((name) => name !== ''))].sort().map(intern)
  }

  return (value, index) => {
    if (value === undefined || value === null) return undefined
    const fields = fieldsOf(value, report, 'endpoints', index, 'hints')
    const zones = namesIn(fields.forZones, index, 'forZones')
    const nodes = namesIn(fields.forNodes, index, 'forNodes')
    if (zones.length + nodes.length === 0) return undefined
    const key = JSON.stringify([zones, nodes])
    let hints = known.get(key)
    if (!hints) {
      hints = Object.freeze({ zones: Object.freeze(zones), nodes: Object.freeze(nodes) })
      known.set(key, hints)
    }
    return hints
  }
}

function triggerOf(text: string | undefined, report: Report): number | undefined {
  if (text === undefined) return undefined
  const unixMs = rfc3339ToUnixMs(text)
  if (unixMs === undefined) {
    report(`The annotation ${triggerTimeAnnotation} is ${shown(text)}; an RFC 3339 time was expected. It is ignored.`)
  }
  return unixMs
}

const rfc3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/

/** Milliseconds since 1970; Kubernetes writes nanoseconds. Returns undefined if the text is not an RFC 3339 time. */
function rfc3339ToUnixMs(text: string): number | undefined {
  const match = rfc3339.exec(text)
  if (!match) return undefined
  const [, seconds = '', fraction = '.', zone = ''] = match
  const unixMs = Date.parse(`${seconds}${fraction.padEnd(4, '0').slice(0, 4)}${zone}`)
  return Number.isNaN(unixMs) ? undefined : unixMs
}
