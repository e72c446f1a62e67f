import { create } from '@bufbuild/protobuf'
import { localv1, parseCidr, parseIp } from '@kpng/api'
import { type Report, shown } from '../../kubernetes/fields.js'
import type { ValueOf } from './shape.js'

// The fields of a state file. Go kpng writes its structs with yaml.v2, which gives Go's field names in lower case. Fields that
// only older versions wrote (`topologykeys`, `hash`) are accepted and have no effect. Fields that Go kpng does not have are
// marked as added.

const ips = { fields: { v4: { list: 'text' }, v6: { list: 'text' } } } as const

const port = {
  fields: {
    name: 'text',
    // A number or a name. Checked where it is read.
    protocol: 'any',
    port: 'number',
    nodeport: 'number',
    targetport: 'number',
    targetportname: 'text',
  },
} as const

const service = {
  fields: {
    namespace: 'text',
    name: 'text',
    type: 'text',
    labels: { texts: true },
    annotations: { texts: true },
    ips: {
      fields: {
        clusterips: ips,
        externalips: ips,
        loadbalancerips: ips,
        headless: 'flag',
        // Added: those with ipMode Proxy.
        loadbalancerproxyips: ips,
      },
    },
    ipfilters: { list: { fields: { targetips: ips, sourceranges: { list: 'text' } } } },
    mapip: 'flag',
    ports: { list: port },
    externaltraffictolocal: 'flag',
    sessionaffinity: { fields: { clientip: { fields: { timeoutseconds: 'number' } } } },
    internaltraffictolocal: 'flag',
    healthchecknodeport: 'number',
  },
} as const

const endpoint = {
  fields: {
    hash: 'any',
    namespace: 'text',
    sourcename: 'text',
    servicename: 'text',
    podname: 'text',
    noports: 'flag',
    // Older versions: today it is `topology.node`.
    nodename: 'text',
    endpoint: {
      fields: {
        hostname: 'text',
        ips,
        local: 'any',
        portoverrides: { list: { fields: { name: 'text', port: 'number' } } },
        scopes: 'any',
      },
    },
    // Added: serving and terminating.
    conditions: { fields: { ready: 'flag', serving: 'flag', terminating: 'flag' } },
    topology: {
      fields: {
        node: 'text',
        zone: 'text',
        'kubernetes.io/hostname': 'text',
        'topology.kubernetes.io/zone': 'text',
        'topology.kubernetes.io/region': 'any',
      },
    },
    // Added: nodes.
    hints: { fields: { zones: { list: 'text' }, nodes: { list: 'text' } } },
  },
} as const

const node = {
  fields: {
    name: 'text',
    labels: { texts: true },
    annotations: { texts: true },
    topology: { fields: { node: 'text', zone: 'text' } },
    // Added: the fields from here on.
    addresses: { list: 'text' },
    podcidrs: { list: 'text' },
    deleting: 'flag',
  },
} as const

export const stateShape = {
  fields: {
    nodes: { list: node },
    services: { list: { fields: { service, endpoints: { list: endpoint }, topologykeys: 'any' } } },
    // Added.
    servicecidrs: { list: { fields: { name: 'text', cidrs: { list: 'text' } } } },
  },
} as const

export type StateFile = ValueOf<typeof stateShape>
export type StateService = ValueOf<typeof service>
export type StateIps = ValueOf<typeof ips>
export type StatePort = ValueOf<typeof port>
export type StateEndpoint = ValueOf<typeof endpoint>
export type StateNode = ValueOf<typeof node>

type Texts = readonly (string | null)[] | null | undefined

/** The addresses in the order of the file, without duplicates. An address in the list of the wrong family is moved to its own. */
export function addressesIn(given: StateIps | null | undefined, field: string, report: Report): localv1.IPSet {
  const found = { IPv4: new Set<string>(), IPv6: new Set<string>() }
  for (const text of [...(given?.v4 ?? []), ...(given?.v6 ?? [])]) {
    const ip = parseIp(text ?? '')
    if (ip) found[ip.family].add(ip.text)
    else report(`${field} has ${shown(text)}, which is not an IP address. The address is skipped.`)
  }
  return create(localv1.IPSetSchema, { v4: [...found.IPv4], v6: [...found.IPv6] })
}

/** A set that is missing stays missing: clients that print what they receive show the difference between missing and empty. */
export function ipSetIn(given: StateIps | null | undefined, field: string, report: Report): localv1.IPSet | undefined {
  return given ? addressesIn(given, field, report) : undefined
}

export function cidrsIn(given: Texts, field: string, report: Report): string[] {
  const found = new Set<string>()
  for (const text of given ?? []) {
    const cidr = parseCidr(text ?? '')
    if (cidr) found.add(cidr.text)
    else report(`${field} has ${shown(text)}, which is not a CIDR such as 10.0.0.0/8 or fd00::/8. It is skipped.`)
  }
  return [...found]
}
