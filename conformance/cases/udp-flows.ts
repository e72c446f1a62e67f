import { addressOf, clusterIp, externalIp, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case, Step } from './case.js'
import { inFamilies, keepsSource, masqueraded, refused, udp } from './cells.js'
import { exposed } from './exposed.js'

// A UDP client keeps its port, so conntrack keeps sending its datagrams where the first one went, until somebody deletes the flow.

const nodeA = addressOf['node-a']

/** One flow from each kind of client to each kind of address. */
const flows = (
  number: number,
  server: string | readonly string[] | undefined,
  rows: readonly number[],
): Step['cells'] => {
  const servers = [server ?? []].flat()
  const kept = server === undefined ? refused : keepsSource(servers, { hits: 'some' })
  const masked = server === undefined ? refused : masqueraded(servers, { hits: 'some' })
  return inFamilies([
    { id: 'cluster-ip', client: 'pod-a', to: udp(clusterIp(number), 80), expect: kept, rows, flow: 'cluster-ip' },
    { id: 'node-a-cluster-ip', client: 'node-a', to: udp(clusterIp(number), 80), expect: masked, rows, flow: 'node-a' },
    { id: 'node-port', client: 'outside', to: udp(nodeA, nodePort(number)), expect: masked, rows, flow: 'node-port' },
    {
      id: 'load-balancer',
      client: 'outside',
      to: udp(loadBalancerIp(number), 80),
      expect: masked,
      rows,
      flow: 'load-balancer',
    },
    {
      id: 'external-ip',
      client: 'outside',
      to: udp(externalIp(number), 80),
      expect: masked,
      rows,
      flow: 'external-ip',
    },
  ])
}

export const udpFlowCases: readonly Case[] = [
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
