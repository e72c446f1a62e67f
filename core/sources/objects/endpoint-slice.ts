import { conditionsOf, type EndpointPort, type EndpointRecord, type EndpointSource, none } from '../../store/index.js'
import { type Fields, fieldsOf, flagOf, isFields, isPort, listOf, type Report, shown, textOf } from './fields.js'
import { hintsReader } from './hints.js'
import { type Family, parseIp } from './ip.js'
import { readObject } from './metadata.js'
import { isName, nameProblem } from './names.js'
import { protocolOf } from './service-ports.js'
import { rfc3339ToUnixMs } from './time.js'

export const serviceNameLabel = 'kubernetes.io/service-name'
const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time'

/** Returns one string for equal texts, so that half a million endpoints share the names of their nodes and zones. */
export type Intern = (text: string) => string

export interface SliceEndpoints {
  readonly source: EndpointSource
  /** When the change behind this slice began, where the controller says so. */
  readonly triggerUnixMs: number | undefined
}

/**
 * The endpoints of an EndpointSlice. Undefined without a complaint for slices that belong to no Service (checklist 4) or hold host
 * names (checklist 6). Records share what is equal in them.
 */
export function endpointsFromKubernetes(object: unknown, report: Report, intern: Intern): SliceEndpoints | undefined {
  const read = readObject(object, report)
  if (!read) return undefined
  const { namespace, name, labels, annotations } = read.metadata
  const service = labels[serviceNameLabel]
  if (service === undefined || service === '') return undefined
  const problem = nameProblem(service)
  if (problem !== undefined) {
    report(`The label ${serviceNameLabel} is ${shown(service)}, which is no name: ${problem}. The slice is left out.`)
    return undefined
  }
  const family = familyOfSlice(read.object, report)
  if (!family) return undefined
  const ports = portsOf(read.object, report)
  const items = listOf(read.object.endpoints, report, 'endpoints')
  const source = { namespace, name, service, endpoints: recordsOf(items, family, ports, report, intern) }
  return { source, triggerUnixMs: triggerOf(annotations[triggerTimeAnnotation], report) }
}

function familyOfSlice(slice: Fields, report: Report): Family | undefined {
  const { addressType } = slice
  if (addressType === 'IPv4') return 'v4'
  if (addressType === 'IPv6') return 'v6'
  if (addressType !== 'FQDN') {
    report(`addressType is ${shown(addressType)}; IPv4 or IPv6 was expected. The slice is left out.`)
  }
  return undefined
}

/**
 * The ports that all endpoints of the slice serve. A missing name is the empty one, as the API server fills it in; a missing
 * number would mean "all ports", which no Service can ask for (checklist 11).
 */
function portsOf(slice: Fields, report: Report): readonly EndpointPort[] {
  const ports = new Map<string, EndpointPort>()
  for (const [index, item] of listOf(slice.ports, report, 'ports').entries()) {
    const fields = fieldsOf(item, report, 'ports', index)
    const name = textOf(fields.name, report, 'ports', index, 'name')
    if (!isPort(fields.port)) {
      const number = fields.port === undefined || fields.port === null ? 'missing' : shown(fields.port)
      report(`ports[${index}].port is ${number}; a port is 1 to 65535. The port is left out.`)
    } else if (protocolOf(fields.protocol) === undefined) {
      report(`ports[${index}].protocol is ${shown(fields.protocol)}; TCP, UDP or SCTP was expected. It is left out.`)
    } else if (ports.has(name)) {
      report(`ports[${index}] has the name ${shown(name)} of an earlier port. The port is left out.`)
    } else {
      ports.set(name, Object.freeze({ name, port: fields.port }))
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
  for (const [index, item] of items.entries()) {
    const fields = fieldsOf(item, report, 'endpoints', index)
    const address = addressOf(fields, family, index, report)
    if (address === undefined) continue
    const record: EndpointRecord = {
      podName: podNameOf(fields.targetRef, index, report),
      hostname: textOf(fields.hostname, report, 'endpoints', index, 'hostname'),
      v4: family === 'v4' ? [address] : none,
      v6: family === 'v6' ? [address] : none,
      ports,
      node: intern(textOf(fields.nodeName, report, 'endpoints', index, 'nodeName')),
      zone: intern(textOf(fields.zone, report, 'endpoints', index, 'zone')),
      hints: hintsOf(fields.hints, index),
      conditions: readConditions(fields.conditions, index, report),
    }
    const earlier = records.get(address)
    if (!earlier) {
      records.set(address, record)
      continue
    }
    report(`endpoints[${index}] has the address ${address} of an earlier endpoint. One of them is left out.`)
    // An address that a terminating pod still holds while a new one has it already (checklist 12).
    if (earlier.conditions.terminating && !record.conditions.terminating) records.set(address, record)
  }
  return records.size === 0 ? none : [...records.values()]
}

/** The first address is the one that counts: the others, where there are any, are the same endpoint. */
function addressOf(fields: Fields, family: Family, index: number, report: Report): string | undefined {
  const [first] = listOf(fields.addresses, report, 'endpoints', index, 'addresses')
  const ip = typeof first === 'string' ? parseIp(first) : undefined
  if (ip?.family === family) return ip.text
  const expected = family === 'v4' ? 'IPv4' : 'IPv6'
  const given = first === undefined ? 'missing' : shown(first)
  report(`endpoints[${index}].addresses[0] is ${given}; an ${expected} address was expected. The endpoint is left out.`)
  return undefined
}

function podNameOf(targetRef: unknown, index: number, report: Report): string {
  if (!isFields(targetRef) || targetRef.kind !== 'Pod') return ''
  const name = textOf(targetRef.name, report, 'endpoints', index, 'targetRef', 'name')
  if (name === '' || isName(name)) return name
  report(`endpoints[${index}].targetRef.name is ${shown(name)}, which is no name: ${nameProblem(name)}. It is ignored.`)
  return ''
}

/** kube-proxy takes a missing `serving` as true, whatever `ready` says (checklist 23). */
function readConditions(value: unknown, index: number, report: Report): EndpointRecord['conditions'] {
  const fields = fieldsOf(value, report, 'endpoints', index, 'conditions')
  const flag = (name: string) => flagOf(fields[name], report, 'endpoints', index, 'conditions', name)
  return conditionsOf({
    ready: flag('ready') ?? true,
    serving: flag('serving') ?? true,
    terminating: flag('terminating') ?? false,
  })
}

function triggerOf(text: string | undefined, report: Report): number | undefined {
  if (text === undefined) return undefined
  const unixMs = rfc3339ToUnixMs(text)
  if (unixMs === undefined) {
    report(`The annotation ${triggerTimeAnnotation} is ${shown(text)}; an RFC 3339 time was expected. It is ignored.`)
  }
  return unixMs
}
