import { families } from '@kpng/api'
import { addressOf, clusterIp, loadBalancerIp, nodePort, type Server } from '../addresses.js'
import type { Case, KubernetesObject, Step } from './case.js'
import { inFamilies, reaches, tcp, udp } from './cells.js'
import { type EndpointOptions, served, tcpPort, udpPort } from './objects.js'

// Which endpoint a client sticks to is random, so stickiness is shown with endpoints that come and go around the client's own.

const nodeA = addressOf['node-a']

const sticky = (
  name: string,
  number: number,
  endpoints: readonly (Server | EndpointOptions)[],
  timeoutSeconds = 10_800,
): KubernetesObject[] =>
  served(name, number, endpoints, {
    ports: [
      tcpPort(80, { name: 'tcp', nodePort: nodePort(number) }),
      udpPort(80, { name: 'udp', nodePort: nodePort(number) }),
    ],
    spec: {
      type: 'LoadBalancer',
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds } },
    },
    ingress: families.map((family) => ({ ip: loadBalancerIp(number)[family] })),
  })

/** Every kind of client and address must get this one server. */
const allGet = (number: number, server: string, rows: readonly number[]): Step['cells'] => {
  const expect = reaches([server])
  const tries = 12
  return inFamilies([
    { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(number), 80), expect, rows, tries },
    { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(number), 80), expect, rows, tries },
    { id: 'node-a', client: 'node-a', to: tcp(clusterIp(number), 80), expect, rows, tries },
    { id: 'outside-load-balancer', client: 'outside', to: tcp(loadBalancerIp(number), 80), expect, rows, tries },
    { id: 'outside-node-port', client: 'outside', to: tcp(nodeA, nodePort(number)), expect, rows, tries },
  ])
}

const unready = { server: 'a1', conditions: { ready: false, serving: false } } as const

export const affinityCases: readonly Case[] = [
  {
    id: 'affinity',
    title: 'A client stays with its endpoint when others come, moves at once when it goes, and does not go back',
    steps: [
      { after: 'one endpoint', objects: sticky('affinity', 80, ['a1']), cells: allGet(80, 'a1', [37]) },
      { after: 'another came', objects: sticky('affinity', 80, ['a1', 'b1']), cells: allGet(80, 'a1', [37]) },
      { after: 'the first went', objects: sticky('affinity', 80, ['b1']), cells: allGet(80, 'b1', [39]) },
      {
        after: 'the first came back',
        objects: sticky('affinity', 80, ['a1', 'b1']),
        cells: allGet(80, 'b1', [37, 39]),
      },
    ],
  },
  {
    id: 'affinity-unready',
    title: 'A client moves at once when its endpoint becomes unready',
    steps: [
      { after: 'one endpoint', objects: sticky('affinity-unready', 81, ['a1']), cells: allGet(81, 'a1', [37]) },
      {
        after: 'it is unready, another is ready',
        objects: sticky('affinity-unready', 81, [unready, 'b1']),
        cells: allGet(81, 'b1', [39]),
      },
    ],
  },
  {
    id: 'affinity-connections',
    title: 'All connections of a client go to one of many endpoints',
    steps: [
      {
        after: 'start',
        objects: sticky('affinity-many', 82, ['a1', 'a2', 'b1', 'b2']),
        cells: inFamilies(
          (['pod-a', 'node-a', 'outside'] as const).map((client) => ({
            id: client,
            client,
            to: tcp(client === 'outside' ? loadBalancerIp(82) : clusterIp(82), 80),
            expect: reaches(['a1', 'a2', 'b1', 'b2'], { hits: 'one' }),
            rows: [37],
          })),
        ),
      },
    ],
  },
  {
    id: 'affinity-timeout',
    title: 'After the timeout a client may be given another endpoint; each new connection begins it anew',
    steps: [
      {
        after: 'start',
        objects: [
          ...sticky('affinity-short', 83, ['a1', 'a2', 'b1', 'b2'], 1),
          ...sticky('affinity-refreshed', 84, ['a1', 'a2', 'b1', 'b2'], 4),
        ],
        cells: inFamilies([
          {
            id: 'expired',
            client: 'pod-a',
            to: tcp(clusterIp(83), 80),
            expect: reaches(['a1', 'a2', 'b1', 'b2'], { hits: 'several' }),
            rows: [38],
            tries: 8,
            spacing: { ms: 1400 },
          },
          {
            id: 'refreshed',
            client: 'pod-a',
            to: tcp(clusterIp(84), 80),
            expect: reaches(['a1', 'a2', 'b1', 'b2'], { hits: 'one' }),
            rows: [38],
            tries: 8,
            spacing: { ms: 1400, atMostMs: 3500 },
          },
        ]),
      },
    ],
  },
]
