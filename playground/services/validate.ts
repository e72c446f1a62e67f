import { parseIp } from '@kpng/api'
import type { Service, ServicePort, ServiceSpec } from '../objects/kinds.js'
import type { Cause } from '../status/status.js'
import { duplicateValue, forbiddenValue, invalidValue, requiredValue, unsupportedValue } from '../validation/causes.js'
import { checkAddress, checkCidr, checkEach, checkLabels, checkName, checkPort } from '../validation/names.js'
import { isExternal, isHeadless, needsClusterIp, needsHealthCheckPort, needsNodePort } from './defaults.js'

const protocols = ['TCP', 'UDP', 'SCTP']
const types = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName']

function oneOf(field: string, value: string | undefined, supported: readonly string[]): Cause[] {
  return value === undefined || supported.includes(value) ? [] : [unsupportedValue(field, value, supported)]
}

/** `IANA_SVC_NAME`: what a named target port looks like. */
export function checkPortName(field: string, name: string): Cause[] {
  if (name.length > 15) return [invalidValue(field, name, 'must be no more than 15 characters')]
  if (!/^[a-z0-9-]+$/.test(name)) {
    return [invalidValue(field, name, 'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')]
  }
  if (!/[a-z]/.test(name)) return [invalidValue(field, name, 'must contain at least one letter (a-z)')]
  if (/^-|-$|--/.test(name))
    return [invalidValue(field, name, 'must not begin or end with a hyphen, nor contain two in a row')]
  return []
}

function checkServicePort(at: string, port: ServicePort, severalPorts: boolean, spec: ServiceSpec): Cause[] {
  const causes: Cause[] = []
  if (severalPorts && !port.name) causes.push(requiredValue(`${at}.name`))
  else if (port.name) causes.push(...checkName(`${at}.name`, 'label', port.name))
  causes.push(...checkPort(`${at}.port`, port.port))
  causes.push(...oneOf(`${at}.protocol`, port.protocol, protocols))
  if (typeof port.targetPort === 'string') causes.push(...checkPortName(`${at}.targetPort`, port.targetPort))
  else if (port.targetPort !== undefined) causes.push(...checkPort(`${at}.targetPort`, port.targetPort))
  if (port.nodePort && !needsNodePort(spec)) {
    causes.push(forbiddenValue(`${at}.nodePort`, `may not be used when \`type\` is '${spec.type}'`))
  }
  return causes
}

function checkPorts(spec: ServiceSpec): Cause[] {
  const ports = spec.ports ?? []
  const causes: Cause[] = []
  if (ports.length === 0 && !isHeadless(spec) && spec.type !== 'ExternalName') causes.push(requiredValue('spec.ports'))
  const names = new Set<string>()
  const numbers = new Set<string>()
  const nodePorts = new Set<string>()
  for (const [index, port] of ports.entries()) {
    const at = `spec.ports[${index}]`
    causes.push(...checkServicePort(at, port, ports.length > 1, spec))
    if (port.name && names.has(port.name)) causes.push(duplicateValue(`${at}.name`, port.name))
    names.add(port.name ?? '')
    const number = `${port.protocol} ${port.port}`
    if (numbers.has(number)) causes.push(duplicateValue(at, { protocol: port.protocol, port: port.port }))
    numbers.add(number)
    if (!port.nodePort) continue
    const nodePort = `${port.protocol} ${port.nodePort}`
    if (nodePorts.has(nodePort)) causes.push(duplicateValue(`${at}.nodePort`, port.nodePort))
    nodePorts.add(nodePort)
  }
  return causes
}

function checkClusterIps(spec: ServiceSpec): Cause[] {
  const addresses = spec.clusterIPs ?? []
  if (!needsClusterIp(spec)) {
    if (!spec.clusterIP && addresses.length === 0) return []
    return [forbiddenValue('spec.clusterIPs', "may not be set when `type` is 'ExternalName'")]
  }
  const causes: Cause[] = []
  if (spec.clusterIP && addresses[0] !== spec.clusterIP) {
    causes.push(invalidValue('spec.clusterIPs', addresses, 'first value must match `clusterIP`'))
  }
  if (isHeadless(spec)) {
    if (addresses.length > 1)
      causes.push(invalidValue('spec.clusterIPs', addresses, "'None' must be the first and only value"))
    if (needsNodePort(spec)) {
      causes.push(invalidValue('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${spec.type} services`))
    }
    return causes
  }
  const checkGiven = (field: string, address: string) => (address === '' ? [] : checkAddress(field, address))
  causes.push(...checkEach('spec.clusterIPs', addresses, checkGiven))
  if (addresses.length > 2) causes.push(invalidValue('spec.clusterIPs', addresses, 'may only hold up to 2 values'))
  if (addresses.length === 2 && parseIp(addresses[0] ?? '')?.family === parseIp(addresses[1] ?? '')?.family) {
    const why = 'may specify no more than one IP for each IP family'
    causes.push(invalidValue('spec.clusterIPs', addresses, why))
  }
  return causes
}

function checkExternal(spec: ServiceSpec): Cause[] {
  const causes = oneOf('spec.externalTrafficPolicy', spec.externalTrafficPolicy, ['Cluster', 'Local'])
  if (spec.externalTrafficPolicy !== undefined && !isExternal(spec)) {
    const why = 'may only be set for externally-accessible services'
    causes.push(invalidValue('spec.externalTrafficPolicy', spec.externalTrafficPolicy, why))
  }
  if (spec.healthCheckNodePort && !needsHealthCheckPort(spec)) {
    const why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
    causes.push(invalidValue('spec.healthCheckNodePort', spec.healthCheckNodePort, why))
  }
  causes.push(...checkEach('spec.externalIPs', spec.externalIPs, checkAddress))
  if (spec.type === 'ExternalName') {
    if (!spec.externalName) causes.push(requiredValue('spec.externalName'))
    else causes.push(...checkName('spec.externalName', 'subdomain', spec.externalName.replace(/\.$/, '')))
  }
  return causes
}

function checkLoadBalancer(spec: ServiceSpec): Cause[] {
  const causes: Cause[] = []
  const only = "may only be used when `type` is 'LoadBalancer'"
  if (spec.type !== 'LoadBalancer') {
    if (spec.loadBalancerSourceRanges?.length) causes.push(forbiddenValue('spec.loadBalancerSourceRanges', only))
    if (spec.allocateLoadBalancerNodePorts !== undefined)
      causes.push(forbiddenValue('spec.allocateLoadBalancerNodePorts', only))
    if (spec.loadBalancerClass !== undefined) causes.push(forbiddenValue('spec.loadBalancerClass', only))
  }
  return [...causes, ...checkEach('spec.loadBalancerSourceRanges', spec.loadBalancerSourceRanges, checkCidr)]
}

function checkChoices(spec: ServiceSpec): Cause[] {
  const causes = [
    ...oneOf('spec.type', spec.type, types),
    ...oneOf('spec.sessionAffinity', spec.sessionAffinity, ['ClientIP', 'None']),
    ...oneOf('spec.internalTrafficPolicy', spec.internalTrafficPolicy, ['Cluster', 'Local']),
    ...oneOf('spec.ipFamilyPolicy', spec.ipFamilyPolicy, ['SingleStack', 'PreferDualStack', 'RequireDualStack']),
    ...oneOf('spec.trafficDistribution', spec.trafficDistribution, ['PreferClose', 'PreferSameZone', 'PreferSameNode']),
  ]
  const timeout = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds
  if (timeout !== undefined && (timeout <= 0 || timeout > 86400)) {
    const field = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds'
    causes.push(invalidValue(field, timeout, 'must be greater than 0 and less than 86400'))
  }
  const families = spec.ipFamilies ?? []
  for (const [index, family] of families.entries()) {
    causes.push(...oneOf(`spec.ipFamilies[${index}]`, family, ['IPv4', 'IPv6']))
    if (families.indexOf(family) < index) causes.push(duplicateValue(`spec.ipFamilies[${index}]`, family))
  }
  return causes
}

/** What may not change once it is there; a change of type to or from ExternalName sets and clears the addresses. */
function checkChange(spec: ServiceSpec, old: ServiceSpec): Cause[] {
  if (!needsClusterIp(spec) || !needsClusterIp(old)) return []
  const causes: Cause[] = []
  const had = old.clusterIPs ?? []
  const has = spec.clusterIPs ?? []
  if (had[0] && had[0] !== has[0]) causes.push(invalidValue('spec.clusterIPs[0]', has, 'may not change once set'))
  const single = spec.ipFamilyPolicy === 'SingleStack'
  if (had[1] && had[1] !== has[1] && !(single && has[1] === undefined)) {
    causes.push(invalidValue('spec.clusterIPs[1]', has, 'may not change once set'))
  }
  if (old.ipFamilies?.[0] && spec.ipFamilies?.[0] && old.ipFamilies[0] !== spec.ipFamilies[0]) {
    causes.push(invalidValue('spec.ipFamilies[0]', spec.ipFamilies, 'may not change once set'))
  }
  if (old.type === 'LoadBalancer' && spec.type === 'LoadBalancer' && old.loadBalancerClass !== spec.loadBalancerClass) {
    causes.push(invalidValue('spec.loadBalancerClass', spec.loadBalancerClass ?? null, 'may not change once set'))
  }
  return causes
}

function checkIngress({ spec, status }: Service): Cause[] {
  return (status?.loadBalancer?.ingress ?? []).flatMap((ingress, index) => {
    const at = `status.loadBalancer.ingress[${index}]`
    const causes = ingress.ip ? checkAddress(`${at}.ip`, ingress.ip) : []
    causes.push(...oneOf(`${at}.ipMode`, ingress.ipMode, ['VIP', 'Proxy']))
    if (ingress.ipMode && !ingress.ip)
      causes.push(forbiddenValue(`${at}.ipMode`, 'may not be specified when `ip` is not set'))
    if (spec.type !== 'LoadBalancer')
      causes.push(forbiddenValue('status.loadBalancer.ingress', 'may only be used when `spec.type` is "LoadBalancer"'))
    return causes
  })
}

export function validateService(service: Service, old?: Service): Cause[] {
  const { spec } = service
  return [
    ...checkPorts(spec),
    ...checkChoices(spec),
    ...checkClusterIps(spec),
    ...checkLabels('spec.selector', spec.selector),
    ...checkExternal(spec),
    ...checkLoadBalancer(spec),
    ...(old ? checkChange(spec, old.spec) : []),
    ...checkIngress(service),
  ]
}
