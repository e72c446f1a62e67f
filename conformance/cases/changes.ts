import { addressOf, clusterIp, externalIp, families, loadBalancerIp, nodePort, type Server } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, passed, refused, tcp } from './cells.js'
import { type EndpointOptions, served, type ServicePort, tcpPort } from './objects.js'

const both = ['a1', 'b1']
const nodeA = addressOf['node-a']

const exposed = (
  name: string,
  number: number,
  endpoints: readonly (Server | EndpointOptions)[],
  more: { ports?: readonly ServicePort[]; spec?: object; ingress?: readonly Record<string, unknown>[] } = {},
): KubernetesObject[] =>
  served(name, number, endpoints, {
    ports: more.ports ?? [tcpPort(80, { nodePort: nodePort(number) })],
    spec: { type: 'LoadBalancer', externalIPs: families.map((family) => externalIp(number)[family]), ...more.spec },
    ingress: more.ingress ?? families.map((family) => ({ ip: loadBalancerIp(number)[family] })),
  })

const endpointChanges: readonly Case[] = [
  {
    id: 'endpoint-moved',
    title: 'New connections go where the endpoint went',
    steps: (['a1', 'b1', 'a2'] as const).map((server) => ({
      after: `the endpoint is ${server}`,
      objects: exposed('endpoint-moved', 120, [server]),
      cells: inFamilies([
        { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(120), 80), expect: keepsSource([server]), rows: [24] },
        { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(120)), expect: masqueraded([server]), rows: [24] },
        { id: 'outside-load-balancer', client: 'outside', to: tcp(loadBalancerIp(120), 80), expect: masqueraded([server]), rows: [24] },
      ]),
    })),
  },
  {
    id: 'endpoints-come-and-go',
    title: 'From one endpoint to two, to none, and to one again',
    steps: ([['a1'], ['a1', 'b1'], [], ['a2']] as const).map((servers) => ({
      after: `endpoints: ${servers.join(', ') || 'none'}`,
      objects: exposed('endpoints-come-and-go', 121, servers),
      cells: inFamilies([
        { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(121), 80), expect: servers.length > 0 ? keepsSource(servers) : refused, rows: [20, 24] },
        { id: 'outside', client: 'outside', to: tcp(loadBalancerIp(121), 80), expect: servers.length > 0 ? masqueraded(servers) : refused, rows: [20, 24] },
      ]),
    })),
  },
  {
    id: 'endpoint-becomes-unready',
    title: 'An endpoint that becomes unready gets no new connections; terminating ones stand in when none is left',
    steps: [
      { after: 'both ready', expect: both, endpoints: ['a1', 'b1'] as const },
      { after: 'one unready', expect: ['a1'], endpoints: ['a1', { server: 'b1', conditions: { ready: false } }] as const },
      {
        after: 'the ready one terminates',
        expect: ['a1'],
        endpoints: [
          { server: 'a1', conditions: { ready: false, serving: true, terminating: true } },
          { server: 'b1', conditions: { ready: false } },
        ] as const,
      },
    ].map(({ after, expect, endpoints }) => ({
      after,
      objects: exposed('becomes-unready', 128, endpoints),
      cells: inFamilies([
        { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(128), 80), expect: keepsSource(expect), rows: [24, 25] },
      ]),
    })),
  },
]

const gone: Case = {
  id: 'service-gone',
  title: 'Nothing of a deleted Service is left, and it can come back',
  steps: [
    { there: true, after: 'it is there' },
    { there: false, after: 'it is gone' },
    { there: true, after: 'it is back' },
  ].map(({ there, after }) => ({
    after,
    objects: there ? exposed('service-gone', 122, ['a1', 'b1']) : [],
    cells: inFamilies([
      { id: 'cluster-ip', client: 'pod-a', to: tcp(clusterIp(122), 80), expect: there ? keepsSource(both) : dropped, rows: [9, 22] },
      { id: 'node-port', client: 'outside', to: tcp(nodeA, nodePort(122)), expect: there ? masqueraded(both) : refused, rows: [22] },
      { id: 'load-balancer', client: 'outside', to: tcp(loadBalancerIp(122), 80), expect: there ? masqueraded(both) : passed, rows: [22] },
      { id: 'external-ip', client: 'outside', to: tcp(externalIp(122), 80), expect: there ? masqueraded(both) : passed, rows: [22] },
    ]),
  })),
}

const portChanged: Case = {
  id: 'port-changed',
  title: 'A changed port: the old one is refused, the new one works, another port and its open connection are not disturbed',
  steps: [80, 8000].map((port, step) => ({
    after: `the port is ${port}`,
    objects: served('port-changed', 123, ['a1'], {
      ports: [tcpPort(port, { name: 'http' }), tcpPort(443, { name: 'https', targetPort: 8081 })],
    }),
    cells: inFamilies([
      { id: 'first-port', client: 'pod-a', to: tcp(clusterIp(123), 80), expect: step === 0 ? keepsSource(['a1']) : refused, rows: [22] },
      { id: 'second-port', client: 'pod-a', to: tcp(clusterIp(123), 8000), expect: step === 0 ? refused : keepsSource(['a1']), rows: [22] },
      { id: 'untouched-port', client: 'pod-a', to: tcp(clusterIp(123), 443), expect: keepsSource(['a1:8081']), rows: [22] },
      { id: 'open-connection', client: 'pod-a', to: tcp(clusterIp(123), 443), expect: keepsSource(['a1:8081']), rows: [22], flow: 'open' },
    ]),
  })),
}

const targetPortChanged: Case = {
  id: 'target-port-changed',
  title: 'A changed target port is used from then on',
  steps: [8080, 9090].map((targetPort) => ({
    after: `the target port is ${targetPort}`,
    objects: served('target-port-changed', 124, ['a1'], { ports: [tcpPort(80, { targetPort })] }),
    cells: inFamilies([
      { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(124), 80), expect: keepsSource([`a1:${targetPort}`]), rows: [19, 22] },
    ]),
  })),
}

const nodePortChanged: Case = {
  id: 'node-port-changed',
  title: 'A changed node port: the old one is refused, the new one works; without one, neither',
  steps: [nodePort(125), nodePort(1125), undefined].map((port) => ({
    after: port === undefined ? 'the type is ClusterIP' : `the node port is ${port}`,
    objects: served('node-port-changed', 125, ['a1'], {
      ports: [port === undefined ? tcpPort(80) : tcpPort(80, { nodePort: port })],
      spec: { type: port === undefined ? 'ClusterIP' : 'NodePort' },
    }),
    cells: inFamilies([
      { id: 'first', client: 'outside', to: tcp(nodeA, nodePort(125)), expect: port === nodePort(125) ? masqueraded(['a1']) : refused, rows: [22] },
      { id: 'second', client: 'outside', to: tcp(nodeA, nodePort(1125)), expect: port === nodePort(1125) ? masqueraded(['a1']) : refused, rows: [22] },
      { id: 'cluster-ip', client: 'pod-a', to: tcp(clusterIp(125), 80), expect: keepsSource(['a1']), rows: [22] },
    ]),
  })),
}

const policyChanged: Case = {
  id: 'policy-changed',
  title: 'A changed external policy decides on endpoints and source from then on',
  steps: ['Cluster', 'Local', 'Cluster'].map((policy) => ({
    after: `the policy is ${policy}`,
    objects: exposed('policy-changed', 127, ['a1', 'b1'], { spec: { externalTrafficPolicy: policy } }),
    cells: inFamilies([
      { id: 'load-balancer', client: 'outside', to: tcp(loadBalancerIp(127), 80), expect: policy === 'Local' ? keepsSource(['a1']) : masqueraded(both), rows: [33, 35] },
      { id: 'node-port', client: 'outside', to: tcp(nodeA, nodePort(127)), expect: policy === 'Local' ? keepsSource(['a1']) : masqueraded(both), rows: [33, 35] },
    ]),
  })),
}

const balancerChanged: readonly Case[] = [
  {
    id: 'load-balancer-ip-withdrawn',
    title: 'A load-balancer IP that is withdrawn is left alone; the node port stays',
    steps: [true, false].map((there) => ({
      after: there ? 'it has the IP' : 'the IP is withdrawn',
      objects: exposed('lb-withdrawn', 129, ['a1'], there ? {} : { ingress: [] }),
      cells: inFamilies([
        { id: 'load-balancer', client: 'outside', to: tcp(loadBalancerIp(129), 80), expect: there ? masqueraded(['a1']) : passed, rows: [16, 22] },
        { id: 'node-port', client: 'outside', to: tcp(nodeA, nodePort(129)), expect: masqueraded(['a1']), rows: [22] },
      ]),
    })),
  },
  {
    id: 'source-ranges-changed',
    title: 'Source ranges come and go',
    steps: [false, true, false].map((guarded) => ({
      after: guarded ? 'only the outside is in the ranges' : 'there are no ranges',
      objects: exposed('ranges-changed', 130, ['a1'], guarded ? { spec: { loadBalancerSourceRanges: ['203.0.113.0/24', '2001:db8:113::/64'] } } : {}),
      cells: inFamilies([
        { id: 'in', client: 'outside', to: tcp(loadBalancerIp(130), 80), expect: masqueraded(['a1']), rows: [45] },
        { id: 'out', client: 'node-b', to: tcp(loadBalancerIp(130), 80), expect: guarded ? dropped : masqueraded(['a1']), rows: [45] },
      ]),
    })),
  },
]

const openConnections: readonly Case[] = [
  {
    id: 'untouched-connection',
    title: 'An open connection is not disturbed by changes to other Services',
    steps: [1, 2, 3, 4].map((round) => ({
      after: `${round === 1 ? 'start' : `change ${round - 1} of others`}`,
      objects: exposed('untouched', 131, ['a1', 'b1']),
      cells: inFamilies([
        { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(131), 80), expect: keepsSource(both, { hits: 'one' }), rows: [22], flow: 'pod-a' },
        { id: 'outside', client: 'outside', to: tcp(nodeA, nodePort(131)), expect: masqueraded(both, { hits: 'one' }), rows: [22], flow: 'outside' },
      ]),
    })),
  },
  {
    id: 'connection-outlives-endpoint',
    title: 'An open TCP connection to an endpoint that left the Service goes on; new ones go elsewhere',
    steps: (['a1', 'b1'] as const).map((server) => ({
      after: `the endpoint is ${server}`,
      objects: exposed('outlives', 132, [server]),
      cells: inFamilies([
        { id: 'open', client: 'pod-a', to: tcp(clusterIp(132), 80), expect: keepsSource(['a1']), rows: [22], flow: 'open' },
        { id: 'new', client: 'pod-a', to: tcp(clusterIp(132), 80), expect: keepsSource([server]), rows: [24] },
      ]),
    })),
  },
]

export const changeCases: readonly Case[] = [
  ...endpointChanges,
  gone,
  portChanged,
  targetPortChanged,
  nodePortChanged,
  policyChanged,
  ...balancerChanged,
  ...openConnections,
]
