import { type Family, type globalv1, type localv1, nameProblem, parseCidr, parseIp } from '@kpng/api'
import type { EndpointRecord } from '../../store/index.js'

// What an upstream sends is checked as what a cluster sends: a core of another version, or one that was tampered with, must not make
// its nodes program something that is not an address or a port, nor break a path. Each function returns the first problem, or undefined.
// Addresses and CIDRs are rewritten to their canonical text where they stand: who owns an address is decided by comparing texts.

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

/** Checks all texts of a list, and puts what was read of them in their place. */
function rewritten(texts: readonly string[], what: string, read: (text: string) => string | undefined): Problem {
  for (const [index, text] of texts.entries()) {
    const canonical = read(text)
    if (canonical === undefined) return `${JSON.stringify(text)} is not ${what}`
    // Nearly all are canonical. Those that are not come from a message that nobody else has.
    if (canonical !== text) (texts as string[])[index] = canonical
  }
  return undefined
}

const familyCheck = (ips: readonly string[], family: Family): Problem =>
  rewritten(ips, `an ${family} address`, (text) => {
    const ip = parseIp(text)
    return ip?.family === family ? ip.text : undefined
  })

const ipsCheck = (set: { readonly v4: readonly string[]; readonly v6: readonly string[] } | undefined): Problem =>
  set && (familyCheck(set.v4, 'IPv4') ?? familyCheck(set.v6, 'IPv6'))

const cidrsCheck = (cidrs: readonly string[]): Problem => rewritten(cidrs, 'a CIDR', (text) => parseCidr(text)?.text)

function uniqueCheck<T>(items: readonly T[], what: string, keyOf: (item: T) => string | number): Problem {
  const seen = new Set<string | number>()
  return firstOf(items, (item) => {
    const key = keyOf(item)
    if (seen.has(key)) return `the ${what} ${JSON.stringify(key)} is there twice`
    seen.add(key)
    return undefined
  })
}

/** As in the API server: a day. 0: a core of the Go lineage does not say. */
const longestAffinitySeconds = 86_400

const affinityCheck = (seconds: number): Problem =>
  seconds >= 0 && seconds <= longestAffinitySeconds
    ? undefined
    : `the session affinity of ${seconds} s is not between 0 and ${longestAffinitySeconds}`

export function serviceProblem(service: localv1.Service): Problem {
  const { namespace, name, ips, ports, ipFilters, healthCheckNodePort, sessionAffinity } = service
  const affinitySeconds = sessionAffinity.case === 'clientIp' ? sessionAffinity.value.timeoutSeconds : 0
  return (
    nameCheck('namespace', namespace) ??
    nameCheck('name', name) ??
    affinityCheck(affinitySeconds) ??
    firstOf([ips?.clusterIps, ips?.externalIps, ips?.loadBalancerIps, ips?.loadBalancerProxyIps], ipsCheck) ??
    firstOf(ports, portMappingCheck) ??
    uniqueCheck(ports, 'port name', (port) => port.name) ??
    uniqueCheck(ports, 'port', ({ protocol, port }) => `${protocol}/${port}`) ??
    firstOf(ipFilters, ({ targetIps, sourceRanges }) => ipsCheck(targetIps) ?? cidrsCheck(sourceRanges)) ??
    portCheck('health-check node port', healthCheckNodePort, 0)
  )
}

const portMappingCheck = ({ name, port, nodePort, targetPort }: localv1.PortMapping): Problem =>
  optionalName('port name', name) ??
  portCheck('port', port, 1) ??
  portCheck('node port', nodePort, 0) ??
  portCheck('target port', targetPort, 0)

export const nodeProblem = ({ name, addresses, podCidrs }: globalv1.Node): Problem =>
  nameCheck('name', name) ??
  rewritten(addresses, 'an IP address', (text) => parseIp(text)?.text) ??
  cidrsCheck(podCidrs)

export const serviceCidrProblem = ({ name, cidrs }: localv1.ServiceCIDR): Problem =>
  nameCheck('name', name) ?? cidrsCheck(cidrs)

export const endpointProblem = ({ podName, node, v4, v6, ports }: EndpointRecord): Problem =>
  optionalName('pod name', podName) ??
  optionalName('node name', node) ??
  ipsCheck({ v4, v6 }) ??
  firstOf(ports ?? [], ({ name, port }) => optionalName('port name', name) ?? portCheck('port', port, 0))
