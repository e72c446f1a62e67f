import { clusterIp, externalIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, passed, refused, tcp, udp, unserved } from './cells.js'
import { balanced, both, exposed, namespace, served, tcpPort, udpPort } from './objects.js'

const gone: Case = {
  id: 'service-gone',
  title: 'Nothing of a deleted Service is left, and it can come back',
  steps: [
    { there: true, after: 'it is there' },
    { there: false, after: 'it is gone' },
    { there: true, after: 'it is back' },
  ].map(({ there, after }) => ({
    after,
    objects: there ? exposed('service-gone', 122, both) : [],
    cells: inFamilies([
      ['cluster-ip', 'pod-a', tcp(clusterIp(122), 80), there ? keepsSource(both) : dropped, [9, 22]],
      ['node-port', 'outside', tcp(nodeA, nodePort(122)), there ? masqueraded(both) : refused, [22]],
      ['load-balancer', 'outside', tcp(loadBalancerIp(122), 80), there ? masqueraded(both) : passed, [22]],
      ['external-ip', 'outside', tcp(externalIp(122), 80), there ? masqueraded(both) : passed, [22]],
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
      ['first-port', 'pod-a', tcp(clusterIp(123), 80), step === 0 ? keepsSource(['a1']) : refused, [22]],
      ['second-port', 'pod-a', tcp(clusterIp(123), 8000), step === 0 ? refused : keepsSource(['a1']), [22]],
      ['untouched-port', 'pod-a', tcp(clusterIp(123), 443), keepsSource(['a1:8081']), [22]],
      ['open-connection', 'pod-a', tcp(clusterIp(123), 443), keepsSource(['a1:8081']), [22], { flow: 'open' }],
    ]),
  })),
}

const targetPortChanged: Case = {
  id: 'target-port-changed',
  title: 'A changed target port is used from then on',
  steps: [8080, 9090].map((targetPort) => ({
    after: `the target port is ${targetPort}`,
    objects: served('target-port-changed', 124, ['a1'], { ports: [tcpPort(80, { targetPort })] }),
    cells: inFamilies([['pod-a', 'pod-a', tcp(clusterIp(124), 80), keepsSource([`a1:${targetPort}`]), [19, 22]]]),
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
      ['first', 'outside', tcp(nodeA, nodePort(125)), port === nodePort(125) ? masqueraded(['a1']) : refused, [22]],
      ['second', 'outside', tcp(nodeA, nodePort(1125)), port === nodePort(1125) ? masqueraded(['a1']) : refused, [22]],
      ['cluster-ip', 'pod-a', tcp(clusterIp(125), 80), keepsSource(['a1']), [22]],
    ]),
  })),
}

const nodePortProtocols: Case = {
  id: 'node-port-protocols',
  title: 'One node-port number serves TCP, then TCP and UDP, then UDP',
  steps: (['TCP', 'TCP and UDP', 'UDP'] as const).map((protocols) => {
    const shared = { nodePort: nodePort(182) }
    const ports = [tcpPort(80, { name: 'tcp', ...shared }), udpPort(80, { name: 'udp', ...shared })]
    const wanted = ports.filter(({ protocol }) => protocols.includes(protocol))
    return {
      after: `the Service has ${protocols}`,
      objects: served('node-port-protocols', 182, ['a1'], { ports: wanted, spec: { type: 'NodePort' } }),
      cells: inFamilies([
        [
          'tcp',
          'outside',
          tcp(nodeA, nodePort(182)),
          protocols.includes('TCP') ? masqueraded(['a1']) : refused,
          [18, 22],
        ],
        [
          'udp',
          'outside',
          udp(nodeA, nodePort(182)),
          protocols.includes('UDP') ? masqueraded(['a1']) : refused,
          [18, 22],
        ],
      ]),
    }
  }),
}

const externalName = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'type-changed', namespace },
  spec: { type: 'ExternalName', externalName: 'example.com' },
} as const

const typeChanged: Case = {
  id: 'type-changed',
  title: 'The type becomes ClusterIP, NodePort and ExternalName',
  steps: (['ExternalName', 'ClusterIP', 'NodePort', 'ExternalName'] as const).map((type) => {
    const port = type === 'NodePort' ? tcpPort(80, { nodePort: nodePort(183) }) : tcpPort(80)
    const [service, ...endpointSlices] = served('type-changed', 183, both, { ports: [port], spec: { type } })
    return {
      after: `the type is ${type}`,
      objects: [type === 'ExternalName' ? externalName : (service as KubernetesObject), ...endpointSlices],
      cells: inFamilies([
        [
          'cluster-ip',
          'pod-a',
          tcp(clusterIp(183), 80),
          type === 'ExternalName' ? unserved : keepsSource(both),
          [5, 22],
        ],
        ['node-port', 'outside', tcp(nodeA, nodePort(183)), type === 'NodePort' ? masqueraded(both) : refused, [22]],
      ]),
    }
  }),
}

const becomesLoadBalancer: Case = {
  id: 'becomes-load-balancer',
  title: 'A Service of TCP and UDP becomes a node port, a load balancer on another port, and a cluster IP again',
  steps: (['ClusterIP', 'NodePort', 'LoadBalancer', 'ClusterIP'] as const).map((type, step) => {
    const port = step === 2 ? 8000 : 80
    const hasNodePort = type !== 'ClusterIP'
    const isBalanced = type === 'LoadBalancer'
    const shared = { ...(hasNodePort && { nodePort: nodePort(184) }) }
    const ports = [tcpPort(port, { name: 'tcp', ...shared }), udpPort(port, { name: 'udp', ...shared })]
    const make = isBalanced ? balanced : served
    return {
      after: `the type is ${type}, the port ${port}`,
      objects: make('becomes-load-balancer', 184, ['a1'], { ports, spec: { type } }),
      cells: inFamilies([
        ['tcp', 'pod-a', tcp(clusterIp(184), port), keepsSource(['a1']), [13, 22]],
        ['udp', 'pod-a', udp(clusterIp(184), port), keepsSource(['a1']), [13, 22]],
        ['node-port', 'outside', tcp(nodeA, nodePort(184)), hasNodePort ? masqueraded(['a1']) : refused, [15, 22]],
        ['node-port-udp', 'outside', udp(nodeA, nodePort(184)), hasNodePort ? masqueraded(['a1']) : refused, [15, 22]],
        [
          'load-balancer',
          'outside',
          tcp(loadBalancerIp(184), port),
          isBalanced ? masqueraded(['a1']) : passed,
          [16, 22],
        ],
        [
          'load-balancer-udp',
          'outside',
          udp(loadBalancerIp(184), port),
          isBalanced ? masqueraded(['a1']) : passed,
          [16, 22],
        ],
      ]),
    }
  }),
}

const policyChanged: Case = {
  id: 'policy-changed',
  title: 'A changed external policy decides on endpoints and source from then on',
  steps: ['Cluster', 'Local', 'Cluster'].map((policy) => ({
    after: `the policy is ${policy}`,
    objects: exposed('policy-changed', 127, both, { spec: { externalTrafficPolicy: policy } }),
    cells: inFamilies([
      [
        'load-balancer',
        'outside',
        tcp(loadBalancerIp(127), 80),
        policy === 'Local' ? keepsSource(['a1']) : masqueraded(both),
        [33, 35],
      ],
      [
        'node-port',
        'outside',
        tcp(nodeA, nodePort(127)),
        policy === 'Local' ? keepsSource(['a1']) : masqueraded(both),
        [33, 35],
      ],
    ]),
  })),
}

const loadBalancerChanges: readonly Case[] = [
  {
    id: 'load-balancer-ip-withdrawn',
    title: 'A load-balancer IP that is withdrawn is left alone; the node port stays',
    steps: [true, false].map((there) => ({
      after: there ? 'it has the IP' : 'the IP is withdrawn',
      objects: exposed('lb-withdrawn', 129, ['a1'], there ? {} : { ingress: [] }),
      cells: inFamilies([
        ['load-balancer', 'outside', tcp(loadBalancerIp(129), 80), there ? masqueraded(['a1']) : passed, [16, 22]],
        ['node-port', 'outside', tcp(nodeA, nodePort(129)), masqueraded(['a1']), [22]],
      ]),
    })),
  },
  {
    id: 'source-ranges-changed',
    title: 'Source ranges come and go',
    steps: [false, true, false].map((guarded) => ({
      after: guarded ? 'only the outside is in the ranges' : 'there are no ranges',
      objects: exposed(
        'ranges-changed',
        130,
        ['a1'],
        guarded ? { spec: { loadBalancerSourceRanges: ['203.0.113.0/24', '2001:db8:113::/64'] } } : {},
      ),
      cells: inFamilies([
        ['in', 'outside', tcp(loadBalancerIp(130), 80), masqueraded(['a1']), [45]],
        ['out', 'node-b', tcp(loadBalancerIp(130), 80), guarded ? dropped : masqueraded(['a1']), [45]],
      ]),
    })),
  },
]

export const serviceChangeCases: readonly Case[] = [
  gone,
  portChanged,
  targetPortChanged,
  nodePortChanged,
  nodePortProtocols,
  typeChanged,
  becomesLoadBalancer,
  policyChanged,
  ...loadBalancerChanges,
]
