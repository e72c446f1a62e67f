import { addressOf, clusterIp, externalIp, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, passed, refused, tcp } from './cells.js'
import { exposed } from './exposed.js'
import { served, tcpPort } from './objects.js'

const both = ['a1', 'b1']
const nodeA = addressOf['node-a']

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
      {
        id: 'cluster-ip',
        client: 'pod-a',
        to: tcp(clusterIp(122), 80),
        expect: there ? keepsSource(both) : dropped,
        rows: [9, 22],
      },
      {
        id: 'node-port',
        client: 'outside',
        to: tcp(nodeA, nodePort(122)),
        expect: there ? masqueraded(both) : refused,
        rows: [22],
      },
      {
        id: 'load-balancer',
        client: 'outside',
        to: tcp(loadBalancerIp(122), 80),
        expect: there ? masqueraded(both) : passed,
        rows: [22],
      },
      {
        id: 'external-ip',
        client: 'outside',
        to: tcp(externalIp(122), 80),
        expect: there ? masqueraded(both) : passed,
        rows: [22],
      },
    ]),
  })),
}

const portChanged: Case = {
  id: 'port-changed',
  title:
    'A changed port: the old one is refused, the new one works, another port and its open connection are not disturbed',
  steps: [80, 8000].map((port, step) => ({
    after: `the port is ${port}`,
    objects: served('port-changed', 123, ['a1'], {
      ports: [tcpPort(port, { name: 'http' }), tcpPort(443, { name: 'https', targetPort: 8081 })],
    }),
    cells: inFamilies([
      {
        id: 'first-port',
        client: 'pod-a',
        to: tcp(clusterIp(123), 80),
        expect: step === 0 ? keepsSource(['a1']) : refused,
        rows: [22],
      },
      {
        id: 'second-port',
        client: 'pod-a',
        to: tcp(clusterIp(123), 8000),
        expect: step === 0 ? refused : keepsSource(['a1']),
        rows: [22],
      },
      {
        id: 'untouched-port',
        client: 'pod-a',
        to: tcp(clusterIp(123), 443),
        expect: keepsSource(['a1:8081']),
        rows: [22],
      },
      {
        id: 'open-connection',
        client: 'pod-a',
        to: tcp(clusterIp(123), 443),
        expect: keepsSource(['a1:8081']),
        rows: [22],
        flow: 'open',
      },
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
      {
        id: 'pod-a',
        client: 'pod-a',
        to: tcp(clusterIp(124), 80),
        expect: keepsSource([`a1:${targetPort}`]),
        rows: [19, 22],
      },
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
      {
        id: 'first',
        client: 'outside',
        to: tcp(nodeA, nodePort(125)),
        expect: port === nodePort(125) ? masqueraded(['a1']) : refused,
        rows: [22],
      },
      {
        id: 'second',
        client: 'outside',
        to: tcp(nodeA, nodePort(1125)),
        expect: port === nodePort(1125) ? masqueraded(['a1']) : refused,
        rows: [22],
      },
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
      {
        id: 'load-balancer',
        client: 'outside',
        to: tcp(loadBalancerIp(127), 80),
        expect: policy === 'Local' ? keepsSource(['a1']) : masqueraded(both),
        rows: [33, 35],
      },
      {
        id: 'node-port',
        client: 'outside',
        to: tcp(nodeA, nodePort(127)),
        expect: policy === 'Local' ? keepsSource(['a1']) : masqueraded(both),
        rows: [33, 35],
      },
    ]),
  })),
}

export const serviceChangeCases: readonly Case[] = [
  gone,
  portChanged,
  targetPortChanged,
  nodePortChanged,
  policyChanged,
]
