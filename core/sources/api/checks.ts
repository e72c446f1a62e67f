import { type Family, type globalv1, type localv1, nameProblem, parseCidr, parseIp } from '@kpng/api'
import type { EndpointRecord } from '../../store/index.js'

// What an upstream sends is checked as what a cluster sends is: a core of another version, or one that was tampered with, must not make
// its nodes program an address or a port that is none, nor break a path. Each function returns what is wrong first, or undefined.

/** `the port 99999 is not between 1 and 65535` */
type Problem = string | undefined

const firstOf = <T>(values: Iterable<T>, check: (value: T) => Problem): Problem => {
  for (const value of values) {
    const problem = check(value)
    if (problem) return problem
  }
  return undefined
}

export const nameCheck = (what: string, name: string): Problem => {
  const problem = nameProblem(name)
  return problem && `the ${what} ${JSON.stringify(name)} cannot be used: ${problem}`
}

const optionalName = (what: string, name: string): Problem => (name === '' ? undefined : nameCheck(what, name))

const portCheck = (what: string, port: number, least: 0 | 1): Problem =>
  port >= least && port <= 65_535 ? undefined : `the ${what} ${port} is not between ${least} and 65535`

const ipCheck = (ip: string, family: Family): Problem =>
  parseIp(ip)?.family === family ? undefined : `${JSON.stringify(ip)} is not an ${family} address`

const ipsCheck = (set: { readonly v4: readonly string[]; readonly v6: readonly string[] } | undefined): Problem =>
  firstOf(set?.v4 ?? [], (ip) => ipCheck(ip, 'IPv4')) ?? firstOf(set?.v6 ?? [], (ip) => ipCheck(ip, 'IPv6'))

const cidrCheck = (cidr: string): Problem => (parseCidr(cidr) ? undefined : `${JSON.stringify(cidr)} is not a CIDR`)

export function serviceProblem(service: localv1.Service): Problem {
  const { namespace, name, ips, ports, ipFilters, healthCheckNodePort, sessionAffinity } = service
  const affinitySeconds = sessionAffinity.case === 'clientIp' ? sessionAffinity.value.timeoutSeconds : 0
  return (
    nameCheck('namespace', namespace) ??
    nameCheck('name', name) ??
    (affinitySeconds < 0 ? `the session affinity of ${affinitySeconds} s is negative` : undefined) ??
    firstOf([ips?.clusterIps, ips?.externalIps, ips?.loadBalancerIps, ips?.loadBalancerProxyIps], ipsCheck) ??
    firstOf(ports, portMappingCheck) ??
    firstOf(ipFilters, ({ targetIps, sourceRanges }) => ipsCheck(targetIps) ?? firstOf(sourceRanges, cidrCheck)) ??
    portCheck('health-check node port', healthCheckNodePort, 0)
  )
}

const portMappingCheck = ({ name, port, nodePort, targetPort }: localv1.PortMapping): Problem =>
  optionalName('port name', name) ??
  portCheck('port', port, 1) ??
  portCheck('node port', nodePort, 0) ??
  portCheck('target port', targetPort, 0)

export const nodeProblem = ({ name }: globalv1.Node): Problem => nameCheck('name', name)

export const serviceCidrProblem = ({ name, cidrs }: localv1.ServiceCIDR): Problem =>
  nameCheck('name', name) ?? firstOf(cidrs, cidrCheck)

export const endpointProblem = ({ podName, node, v4, v6, ports }: EndpointRecord): Problem =>
  optionalName('pod name', podName) ??
  optionalName('node name', node) ??
  ipsCheck({ v4, v6 }) ??
  firstOf(ports ?? [], ({ name, port }) => optionalName('port name', name) ?? portCheck('port', port, 0))
