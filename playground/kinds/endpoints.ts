import { hostPort, parseIp } from '@kpng/api'
import type { EndpointSlice, Endpoints, SlicePort } from '../objects/kinds.js'
import { age } from '../objects/time.js'
import type { KubeObject } from '../objects/types.js'
import type { Cause } from '../status/status.js'
import { duplicateValue, invalidValue, requiredValue, unsupportedValue } from '../validation/causes.js'
import { checkAddress, checkName, checkPort } from '../validation/names.js'
import { ageColumn, defineKind, nameColumn } from './kind.js'

const shownLimit = 3

/** The first few of a list, and how many more there are. */
const some = (items: readonly string[]): string =>
  items.length === 0
    ? '<none>'
    : `${items.slice(0, shownLimit).join(',')}${items.length > shownLimit ? ` + ${items.length - shownLimit} more...` : ''}`

function endpointAddresses({ subsets = [] }: Endpoints): string[] {
  return subsets.flatMap(({ addresses = [], ports = [] }) =>
    ports.length === 0
      ? addresses.map(({ ip }) => ip)
      : ports.flatMap(({ port }) => addresses.map(({ ip }) => hostPort(ip, port ?? 0))),
  )
}

function validateEndpoints(object: KubeObject): Cause[] {
  return ((object as Endpoints).subsets ?? []).flatMap(
    ({ addresses = [], notReadyAddresses = [], ports = [] }, index) => {
      const at = `subsets[${index}]`
      const causes = addresses.flatMap(({ ip }, i) => checkAddress(`${at}.addresses[${i}].ip`, ip))
      causes.push(...notReadyAddresses.flatMap(({ ip }, i) => checkAddress(`${at}.notReadyAddresses[${i}].ip`, ip)))
      causes.push(...ports.flatMap(({ port }, i) => checkPort(`${at}.ports[${i}].port`, port)))
      if (addresses.length + notReadyAddresses.length === 0) {
        causes.push(requiredValue(at, 'must specify `addresses` or `notReadyAddresses`'))
      }
      return causes
    },
  )
}

export const endpointsKind = defineKind({
  group: '',
  version: 'v1',
  kind: 'Endpoints',
  plural: 'endpoints',
  singular: 'endpoints',
  shortNames: ['ep'],
  namespaced: true,
  type: 'io.k8s.api.core.v1.Endpoints',
  nameRule: 'subdomain',
  columns: [nameColumn, { name: 'Endpoints', description: 'Addresses and ports that are ready.' }, ageColumn],
  row: (object, now) => [
    object.metadata.name,
    some(endpointAddresses(object as Endpoints)),
    age(object.metadata.creationTimestamp, now),
  ],
  strategy: {
    prepare: (object) => {
      for (const subset of (object as Endpoints).subsets ?? [])
        for (const port of subset.ports ?? []) port.protocol ??= 'TCP'
    },
    validate: validateEndpoints,
  },
})

const addressTypes = ['FQDN', 'IPv4', 'IPv6']

function checkSlicePorts(ports: readonly SlicePort[]): Cause[] {
  const names = new Set<string>()
  return ports.flatMap(({ name = '', port, protocol }, index) => {
    const at = `ports[${index}]`
    const causes = name === '' ? [] : checkName(`${at}.name`, 'label', name)
    if (names.has(name)) causes.push(duplicateValue(`${at}.name`, name))
    names.add(name)
    if (port !== undefined) causes.push(...checkPort(`${at}.port`, port))
    if (protocol && !['TCP', 'UDP', 'SCTP'].includes(protocol)) {
      causes.push(unsupportedValue(`${at}.protocol`, protocol, ['SCTP', 'TCP', 'UDP']))
    }
    return causes
  })
}

function validateSlice(object: KubeObject, before?: KubeObject): Cause[] {
  const slice = object as EndpointSlice
  const old = before as EndpointSlice | undefined
  const causes: Cause[] = []
  if (!slice.addressType) causes.push(requiredValue('addressType'))
  else if (!addressTypes.includes(slice.addressType)) {
    causes.push(unsupportedValue('addressType', slice.addressType, addressTypes))
  }
  if (old && old.addressType !== slice.addressType) {
    causes.push(invalidValue('addressType', slice.addressType, 'field is immutable'))
  }
  const endpoints = slice.endpoints ?? []
  if (endpoints.length > 1000) {
    causes.push({
      reason: 'FieldValueTooMany',
      field: 'endpoints',
      message: `Too many: ${endpoints.length}: must have at most 1000 items`,
    })
  }
  for (const [index, { addresses = [] }] of endpoints.entries()) {
    const at = `endpoints[${index}].addresses`
    if (addresses.length === 0) causes.push(requiredValue(at, 'must contain at least 1 address'))
    for (const [position, address] of addresses.entries()) {
      const field = `${at}[${position}]`
      if (slice.addressType === 'FQDN') causes.push(...checkName(field, 'subdomain', address))
      else if (parseIp(address)?.family !== slice.addressType) {
        causes.push(invalidValue(field, address, `must be a valid ${slice.addressType} address`))
      }
    }
  }
  return [...causes, ...checkSlicePorts(slice.ports ?? [])]
}

export const endpointSliceKind = defineKind({
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  singular: 'endpointslice',
  namespaced: true,
  type: 'io.k8s.api.discovery.v1.EndpointSlice',
  nameRule: 'subdomain',
  countsGenerations: true,
  columns: [
    nameColumn,
    { name: 'AddressType', description: 'IPv4, IPv6 or FQDN.' },
    { name: 'Ports', description: 'The ports that each endpoint has.' },
    { name: 'Endpoints', description: 'The addresses.' },
    ageColumn,
  ],
  row: (object, now) => {
    const { metadata, addressType, ports, endpoints } = object as EndpointSlice
    const numbers = (ports ?? []).map(({ port }) => String(port ?? '*'))
    const addresses = (endpoints ?? []).flatMap((endpoint) => endpoint.addresses)
    const shownPorts = numbers.length === 0 ? '<unset>' : some(numbers)
    const shown = addresses.length === 0 ? '<unset>' : some(addresses)
    return [metadata.name, addressType, shownPorts, shown, age(metadata.creationTimestamp, now)]
  },
  strategy: {
    prepare: (object) => {
      const slice = object as EndpointSlice
      slice.endpoints ??= []
      for (const port of slice.ports ?? []) {
        port.name ??= ''
        port.protocol ??= 'TCP'
      }
    },
    validate: validateSlice,
  },
})
