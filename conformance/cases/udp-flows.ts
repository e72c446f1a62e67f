import { clusterIp, externalIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case, Expectation, Step } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, refused, tcp, udp, unserved } from './cells.js'
import { exposed, served, tcpAndUdp } from './objects.js'

// A UDP client keeps its port, so conntrack keeps sending its datagrams where the first one went, until somebody deletes the flow.

/** One flow from each kind of client to each kind of address. */
const flows = (
  number: number,
  server: string | readonly string[] | undefined,
  rows: readonly number[],
): Step['cells'] => {
  const servers = [server ?? []].flat()
  const kept = server === undefined ? refused : keepsSource(servers, { hits: 'some' })
  const masked = server === undefined ? refused : masqueraded(servers, { hits: 'some' })
  return [
    ...inFamilies([
      ['cluster-ip', 'pod-a', udp(clusterIp(number), 80), kept, rows, { flow: 'cluster-ip' }],
      ['node-a-cluster-ip', 'node-a', udp(clusterIp(number), 80), masked, rows, { flow: 'node-a' }],
    ]),
    ...flowsFromOutside(number, masked, rows),
  ]
}

const flowsFromOutside = (number: number, masked: Expectation, rows: readonly number[]): Step['cells'] =>
  inFamilies([
    ['node-port', 'outside', udp(nodeA, nodePort(number)), masked, rows, { flow: 'node-port' }],
    ['load-balancer', 'outside', udp(loadBalancerIp(number), 80), masked, rows, { flow: 'load-balancer' }],
    ['external-ip', 'outside', udp(externalIp(number), 80), masked, rows, { flow: 'external-ip' }],
  ])

/** The same flows where nobody serves them: how that shows depends on the kind of address. */
const unservedFlows = (number: number): Step['cells'] =>
  flows(number, undefined, [53]).map((cell) => ({ ...cell, expect: unserved }))

const draining = { server: 'a1', conditions: { ready: false, serving: true, terminating: true } } as const
const unready = { server: 'a1', conditions: { ready: false } } as const

export const udpFlowCases: readonly Case[] = [
  {
    id: 'udp-target-port-changed',
    title: 'A UDP client in mid-flow follows when the target port changes',
    steps: [8080, 9090].map((targetPort) => ({
      after: `the target port is ${targetPort}`,
      objects: exposed('udp-target-port', 186, ['a1'], { ports: tcpAndUdp({ nodePort: nodePort(186), targetPort }) }),
      cells: flows(186, `a1:${targetPort}`, [53]),
    })),
  },
  {
    id: 'udp-internal-local',
    title: 'internalTrafficPolicy Local: a UDP client in mid-flow follows when the endpoint of its node is replaced',
    steps: (['a1', undefined, 'a2'] as const).map((server) => ({
      after: server === undefined ? 'this node has none' : `the endpoint of this node is ${server}`,
      objects: served('udp-internal-local', 187, server === undefined ? ['b1'] : [server, 'b1'], {
        ports: tcpAndUdp(),
        spec: { internalTrafficPolicy: 'Local' },
      }),
      cells: inFamilies([
        [
          'pod-a',
          'pod-a',
          udp(clusterIp(187), 80),
          server === undefined ? dropped : keepsSource([server]),
          [32, 53],
          { flow: 'pod-a' },
        ],
      ]),
    })),
  },
  {
    id: 'udp-endpoint-moved',
    title: 'A UDP client in mid-flow follows when its endpoint moves',
    steps: [
      { after: 'the endpoint is a1', objects: exposed('udp-moved', 140, ['a1']), cells: flows(140, 'a1', [53]) },
      { after: 'it is b1', objects: exposed('udp-moved', 140, ['b1']), cells: flows(140, 'b1', [53]) },
    ],
  },
  {
    id: 'udp-no-endpoints',
    title: 'A UDP client in mid-flow is refused when the last endpoint goes, and served when one comes',
    steps: [
      { after: 'the endpoint is a1', objects: exposed('udp-none', 141, ['a1']), cells: flows(141, 'a1', [53]) },
      { after: 'there is none', objects: exposed('udp-none', 141, []), cells: flows(141, undefined, [20, 54]) },
      { after: 'it is a2', objects: exposed('udp-none', 141, ['a2']), cells: flows(141, 'a2', [53]) },
    ],
  },
  {
    id: 'udp-endpoint-appears',
    title: 'A UDP client that was refused is served by the same socket when an endpoint comes',
    steps: [
      { after: 'there is no endpoint', objects: exposed('udp-appears', 142, []), cells: flows(142, undefined, [20]) },
      { after: 'there is one', objects: exposed('udp-appears', 142, ['a1']), cells: flows(142, 'a1', [53]) },
    ],
  },
  {
    id: 'udp-endpoints-appear',
    title: 'A UDP client that was refused is served by the same socket when several endpoints come at once',
    steps: [
      { after: 'there is no endpoint', objects: exposed('udp-two', 144, []), cells: flows(144, undefined, [20]) },
      { after: 'there are two', objects: exposed('udp-two', 144, ['a1', 'b1']), cells: flows(144, ['a1', 'b1'], [53]) },
    ],
  },
  {
    id: 'udp-service-made-again',
    title: 'A UDP client in mid-flow is served by the endpoints of a Service that was deleted and made again',
    steps: [
      { after: 'the endpoint is a1', objects: exposed('udp-again', 145, ['a1']), cells: flows(145, 'a1', [53]) },
      { after: 'the Service is gone', objects: [], cells: [] },
      { after: 'it is back, with b1', objects: exposed('udp-again', 145, ['b1']), cells: flows(145, 'b1', [53]) },
    ],
  },
  {
    id: 'udp-sending-before-service',
    title: 'A UDP client that was sending before its Service existed is served once it does',
    steps: [
      { after: 'there is no Service', objects: [], cells: unservedFlows(146) },
      { after: 'there is one, with a1', objects: exposed('udp-before', 146, ['a1']), cells: flows(146, 'a1', [53]) },
    ],
  },
  {
    id: 'udp-sending-before-unready-service',
    title: 'A UDP client that was sending before its Service existed is refused while that has no ready endpoint',
    steps: [
      { after: 'there is no Service', objects: [], cells: unservedFlows(147) },
      {
        after: 'there is one, with an endpoint that is not ready',
        objects: exposed('udp-before-unready', 147, [unready]),
        cells: flows(147, undefined, [20, 53]),
      },
      {
        after: 'the endpoint is ready',
        objects: exposed('udp-before-unready', 147, ['a1']),
        cells: flows(147, 'a1', [53]),
      },
    ],
  },
  {
    id: 'udp-endpoint-terminates',
    title: 'A UDP client in mid-flow stays with an endpoint that terminates but serves; new clients go to ready ones',
    steps: [
      { after: 'the endpoint is a1', objects: exposed('udp-draining', 148, ['a1']), cells: flows(148, 'a1', [53]) },
      {
        after: 'a1 terminates but serves, b1 is ready',
        objects: exposed('udp-draining', 148, [draining, 'b1']),
        cells: [
          ...flows(148, 'a1', [53]),
          ...inFamilies([['new', 'pod-a', udp(clusterIp(148), 80), keepsSource(['b1']), [25]]]),
        ],
      },
      { after: 'a1 is gone', objects: exposed('udp-draining', 148, ['b1']), cells: flows(148, 'b1', [53]) },
    ],
  },
  {
    id: 'udp-policy-becomes-local',
    title: 'externalTrafficPolicy becomes Local: a UDP client in mid-flow stays with its endpoint on another node',
    steps: [
      {
        after: 'the policy is Cluster, the endpoint is b1',
        objects: exposed('udp-becomes-local', 149, ['b1']),
        cells: flowsFromOutside(149, masqueraded(['b1']), [53]),
      },
      {
        after: 'the policy is Local, and there is a1 too',
        objects: exposed('udp-becomes-local', 149, ['a1', 'b1'], { spec: { externalTrafficPolicy: 'Local' } }),
        cells: [
          ...flowsFromOutside(149, masqueraded(['b1']), [53]),
          ...inFamilies([
            ['new', 'outside', udp(externalIp(149), 80), keepsSource(['a1']), [33]],
            ['new-tcp', 'outside', tcp(externalIp(149), 80), keepsSource(['a1']), [33]],
          ]),
        ],
      },
    ],
  },
  {
    id: 'udp-flow-stays',
    title: 'A UDP client in mid-flow stays with its endpoint while that serves',
    steps: [
      { after: 'the endpoint is a1', objects: exposed('udp-stays', 143, ['a1']), cells: flows(143, 'a1', [53]) },
      {
        after: 'others came',
        objects: exposed('udp-stays', 143, ['a1', 'a2', 'b1', 'b2']),
        cells: flows(143, 'a1', [53]),
      },
    ],
  },
]
