import { parseIp } from '@kpng/api'
import type { IpFamily, Service } from '../objects/kinds.js'
import { keyOf } from '../objects/types.js'
import type { Cause } from '../status/status.js'
import { forbiddenValue, invalidValue } from '../validation/causes.js'
import {
  isHeadless,
  isHeadlessWithoutSelector,
  needsClusterIp,
  needsHealthCheckPort,
  needsNodePort,
} from './defaults.js'
import type { ServiceNetwork } from './network.js'

/** Decides the IP families of a Service, then takes the cluster IPs and node ports it needs. */
export function allocate(service: Service, network: ServiceNetwork): Cause[] {
  if (!needsClusterIp(service.spec)) return []
  const causes = decideFamilies(service, network.families)
  if (causes.length > 0) return causes
  return [...takeAddresses(service, network), ...takePorts(service, network)]
}

function familyProblems({ spec }: Service, configured: readonly IpFamily[]): Cause[] {
  const causes: Cause[] = []
  const several = (spec.clusterIPs?.length ?? 0) > 1 || (spec.ipFamilies?.length ?? 0) > 1
  const policy = spec.ipFamilyPolicy
  if (several && (policy === undefined || policy === 'SingleStack')) {
    const why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple 'ipFamilies' are specified"
    causes.push(invalidValue('spec.ipFamilyPolicy', policy ?? null, why))
  }
  const selectorless = isHeadlessWithoutSelector(spec)
  if (policy === 'RequireDualStack' && configured.length < 2 && !selectorless) {
    causes.push(invalidValue('spec.ipFamilyPolicy', policy, 'this cluster is not configured for dual-stack services'))
  }
  for (const [index, family] of (spec.ipFamilies ?? []).entries()) {
    if (!configured.includes(family) && !selectorless) {
      causes.push(invalidValue(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'))
    }
    const address = spec.clusterIPs?.[index]
    const actual = address === undefined ? undefined : parseIp(address)?.family
    if (actual && actual !== family) {
      const why = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``
      causes.push(invalidValue(`spec.clusterIPs[${index}]`, spec.clusterIPs, why))
    }
  }
  return causes
}

function decideFamilies(service: Service, configured: readonly IpFamily[]): Cause[] {
  const causes = familyProblems(service, configured)
  if (causes.length > 0) return causes
  const { spec } = service
  const families: IpFamily[] = [...(spec.ipFamilies ?? [])]
  for (const [index, address] of (spec.clusterIPs ?? []).entries()) {
    const family = parseIp(address)?.family
    if (family && families[index] === undefined) families[index] = family
  }
  const selectorless = isHeadlessWithoutSelector(spec)
  // Nobody allocates for a headless Service without selector: its slices may be of any family.
  spec.ipFamilyPolicy ??= selectorless && families.length !== 1 ? 'RequireDualStack' : 'SingleStack'
  if (families.length === 0) families.push(configured[0] ?? 'IPv4')
  if (families.length === 1 && spec.ipFamilyPolicy !== 'SingleStack') {
    const other: IpFamily = families[0] === 'IPv4' ? 'IPv6' : 'IPv4'
    if (configured.includes(other) || selectorless) families.push(other)
  }
  spec.ipFamilies = families
  return []
}

function takeAddresses(service: Service, network: ServiceNetwork): Cause[] {
  const { spec } = service
  if (isHeadless(spec)) {
    spec.clusterIP = 'None'
    spec.clusterIPs = ['None']
    return []
  }
  const key = keyOf(service.metadata.namespace, service.metadata.name)
  const wanted = spec.clusterIPs ?? []
  const addresses: string[] = []
  for (const [index, family] of (spec.ipFamilies ?? []).entries()) {
    const given = wanted[index]
    const problem = given ? network.addressProblem(key, given) : undefined
    if (problem) return [invalidValue('spec.clusterIPs', wanted, problem)]
    const address = given || network.freeAddress(family)
    if (!address) return [invalidValue('spec.clusterIPs', wanted, `failed to allocate a serviceIP: range is full`)]
    addresses.push(address)
  }
  spec.clusterIPs = addresses
  spec.clusterIP = addresses[0]
  return []
}

function takePorts(service: Service, network: ServiceNetwork): Cause[] {
  const { spec } = service
  const key = keyOf(service.metadata.namespace, service.metadata.name)
  const causes: Cause[] = []
  const own = new Set<number>()
  const check = (field: string, port: number) => {
    const problem = network.portProblem(key, port)
    if (problem) causes.push(invalidValue(field, port, problem))
    own.add(port)
  }
  for (const [index, { nodePort }] of (spec.ports ?? []).entries()) {
    if (nodePort) check(`spec.ports[${index}].nodePort`, nodePort)
  }
  if (spec.healthCheckNodePort) {
    const field = 'spec.healthCheckNodePort'
    if (!own.has(spec.healthCheckNodePort)) check(field, spec.healthCheckNodePort)
    else causes.push(invalidValue(field, spec.healthCheckNodePort, 'provided port is already allocated'))
  }
  if (causes.length > 0) return causes
  const take = (field: string): number => {
    const port = network.freePort(own)
    if (port === undefined) causes.push(forbiddenValue(field, 'failed to allocate a nodePort: range is full'))
    else own.add(port)
    return port ?? 0
  }
  if (needsNodePort(spec) && spec.allocateLoadBalancerNodePorts !== false) {
    for (const [index, port] of (spec.ports ?? []).entries()) {
      if (port.nodePort) continue
      // The same port over TCP and UDP gets one number, as people expect of DNS.
      const twin = spec.ports?.find((other) => other !== port && other.port === port.port && other.nodePort)
      const clash = spec.ports?.some((other) => other.nodePort === twin?.nodePort && other.protocol === port.protocol)
      port.nodePort = twin && !clash ? (twin.nodePort ?? 0) : take(`spec.ports[${index}].nodePort`)
    }
  }
  if (needsHealthCheckPort(spec) && !spec.healthCheckNodePort)
    spec.healthCheckNodePort = take('spec.healthCheckNodePort')
  return causes
}
