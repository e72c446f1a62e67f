import type { ValueOf } from './shape.js'

// Go kpng's state file: its structs as yaml.v2 writes them, which is the Go field names in lower case; what older versions
// wrote and today means nothing (`topologykeys`, `hash`); and what this kpng adds, in the same manner.

const ips = { fields: { v4: { list: 'text' }, v6: { list: 'text' } } } as const

const port = {
  fields: {
    name: 'text',
    // A number, or its name. Checked where it is read.
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
        // Ours: those with ipMode Proxy.
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
    // Before `topology` had a node.
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
    // Ours: serving and terminating.
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
    // Ours: nodes.
    hints: { fields: { zones: { list: 'text' }, nodes: { list: 'text' } } },
  },
} as const

const node = {
  fields: {
    name: 'text',
    labels: { texts: true },
    annotations: { texts: true },
    topology: { fields: { node: 'text', zone: 'text' } },
    // Ours, from here on.
    addresses: { list: 'text' },
    podcidrs: { list: 'text' },
    deleting: 'flag',
  },
} as const

export const stateShape = {
  fields: {
    nodes: { list: node },
    services: { list: { fields: { service, endpoints: { list: endpoint }, topologykeys: 'any' } } },
    // Ours.
    servicecidrs: { list: { fields: { name: 'text', cidrs: { list: 'text' } } } },
  },
} as const

export type StateFile = ValueOf<typeof stateShape>
export type StateService = ValueOf<typeof service>
export type StateIps = ValueOf<typeof ips>
export type StatePort = ValueOf<typeof port>
export type StateEndpoint = ValueOf<typeof endpoint>
export type StateNode = ValueOf<typeof node>
