import type { localv1 } from '@kpng/api'
import type { EndpointPort, EndpointRecord, ServiceEntry } from '../../store/index.js'
import { listOf, mapOf, textOf } from './yaml-text.js'

// Field names and order of Go kpng's structs, in lower case. Go kpng's reader rejects fields that it does not know, so fields that
// kpng added are written only if they are set. A cluster that does not use them gives a file that Go kpng can read.

/** One item of `services:`. */
export function serviceText(entry: ServiceEntry & { readonly service: localv1.Service }): string {
  const { service } = entry
  const endpoints = [...entry.sources]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([slice, records]) => records.map((record) => endpointText(forService(service, record), slice, entry)))
  return [
    '- service:\n',
    `    namespace: ${textOf(service.namespace)}\n`,
    `    name: ${textOf(service.name)}\n`,
    `    type: ${textOf(service.type)}\n`,
    mapOf('    ', 'labels', service.labels),
    mapOf('    ', 'annotations', service.annotations),
    ipsText(service.ips),
    filtersText(service.ipFilters),
    `    mapip: ${service.mapIp}\n`,
    portsText(service.ports),
    `    externaltraffictolocal: ${service.externalTrafficToLocal}\n`,
    affinityText(service.sessionAffinity),
    `    internaltraffictolocal: ${service.internalTrafficToLocal}\n`,
    `    healthchecknodeport: ${service.healthCheckNodePort}\n`,
    endpoints.length === 0 ? '  endpoints: []\n' : '  endpoints:\n',
    ...endpoints,
  ].join('')
}

/** A missing set is null: clients that print what they receive show the difference between missing and empty. */
function ipSetText(indent: string, key: string, set: localv1.IPSet | undefined): string {
  if (!set) return `${indent}${key}: null\n`
  return `${indent}${key}:\n${listOf(`${indent}  `, 'v4', set.v4)}${listOf(`${indent}  `, 'v6', set.v6)}`
}

function ipsText(ips: localv1.ServiceIPs | undefined): string {
  if (!ips) return '    ips: null\n'
  return [
    '    ips:\n',
    ipSetText('      ', 'clusterips', ips.clusterIps),
    ipSetText('      ', 'externalips', ips.externalIps),
    ipSetText('      ', 'loadbalancerips', ips.loadBalancerIps),
    `      headless: ${ips.headless}\n`,
    ips.loadBalancerProxyIps ? ipSetText('      ', 'loadbalancerproxyips', ips.loadBalancerProxyIps) : '',
  ].join('')
}

function filtersText(filters: readonly localv1.IPFilter[]): string {
  if (filters.length === 0) return '    ipfilters: []\n'
  const items = filters.map(({ targetIps, sourceRanges }) => {
    const fields = ipSetText('      ', 'targetips', targetIps) + listOf('      ', 'sourceranges', sourceRanges)
    return `    - ${fields.trimStart()}`
  })
  return `    ipfilters:\n${items.join('')}`
}

function portsText(ports: readonly localv1.PortMapping[]): string {
  if (ports.length === 0) return '    ports: []\n'
  const items = ports.map((port) =>
    [
      `    - name: ${textOf(port.name)}\n`,
      `      protocol: ${port.protocol}\n`,
      `      port: ${port.port}\n`,
      `      nodeport: ${port.nodePort}\n`,
      `      targetport: ${port.targetPort}\n`,
      `      targetportname: ${textOf(port.targetPortName)}\n`,
    ].join(''),
  )
  return `    ports:\n${items.join('')}`
}

function affinityText(affinity: localv1.Service['sessionAffinity']): string {
  if (affinity.case !== 'clientIp') return '    sessionaffinity: null\n'
  return `    sessionaffinity:\n      clientip:\n        timeoutseconds: ${affinity.value.timeoutSeconds}\n`
}

/** State files have no protocol for an endpoint's port, so a port that is not served because of its protocol is left out. */
function forService({ ports }: localv1.Service, record: EndpointRecord): EndpointRecord {
  const isOther = ({ name, protocol }: EndpointPort) =>
    protocol !== undefined && ports.some((port) => port.name === name && port.protocol !== protocol)
  return record.ports?.some(isOther) ? { ...record, ports: record.ports.filter((port) => !isOther(port)) } : record
}

function endpointText(record: EndpointRecord, source: string, service: ServiceEntry): string {
  return [
    `  - namespace: ${textOf(service.namespace)}\n`,
    `    sourcename: ${textOf(source)}\n`,
    `    servicename: ${textOf(service.name)}\n`,
    `    podname: ${textOf(record.podName)}\n`,
    record.ports?.length === 0 ? '    noports: true\n' : '',
    '    endpoint:\n',
    `      hostname: ${textOf(record.hostname)}\n`,
    '      ips:\n',
    listOf('        ', 'v4', record.v4),
    listOf('        ', 'v6', record.v6),
    overridesText(record.ports),
    conditionsText(record.conditions),
    '    topology:\n',
    `      node: ${textOf(record.node)}\n`,
    `      zone: ${textOf(record.zone)}\n`,
    hintsText(record.hints),
  ].join('')
}

function overridesText(ports: EndpointRecord['ports']): string {
  if (ports === undefined || ports.length === 0) return '      portoverrides: []\n'
  const items = ports.map(({ name, port }) => `      - name: ${textOf(name)}\n        port: ${port}\n`)
  return `      portoverrides:\n${items.join('')}`
}

function conditionsText({ ready, serving, terminating }: EndpointRecord['conditions']): string {
  const ours = `${serving === ready ? '' : `      serving: ${serving}\n`}${terminating ? '      terminating: true\n' : ''}`
  return `    conditions:\n      ready: ${ready}\n${ours}`
}

function hintsText(hints: EndpointRecord['hints']): string {
  if (!hints) return '    hints: null\n'
  const nodes = hints.nodes.length === 0 ? '' : listOf('      ', 'nodes', hints.nodes)
  return `    hints:\n${listOf('      ', 'zones', hints.zones)}${nodes}`
}
