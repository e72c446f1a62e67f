import { clusterIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case, KubernetesObject, Step } from './case.js'
import { inFamilies, oneStep, reaches, tcp, udp } from './cells.js'
import { balanced, type EndpointList } from './objects.js'

// Which endpoint a client keeps is random, so session affinity is shown with endpoints that come and go around the client's own.

const many = ['a1', 'a2', 'b1', 'b2'] as const

const withAffinity = (
  name: string,
  number: number,
  endpoints: EndpointList,
  timeoutSeconds = 10_800,
): KubernetesObject[] =>
  balanced(name, number, endpoints, {
    spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds } } },
  })

/** Every kind of client and address must get this one server. */
const allGet = (number: number, server: string, rows: readonly number[]): Step['cells'] => {
  const expect = reaches([server])
  const tries = 12
  return inFamilies([
    ['pod-a', 'pod-a', tcp(clusterIp(number), 80), expect, rows, { tries }],
    ['pod-a-udp', 'pod-a', udp(clusterIp(number), 80), expect, rows, { tries }],
    ['node-a', 'node-a', tcp(clusterIp(number), 80), expect, rows, { tries }],
    ['outside-load-balancer', 'outside', tcp(loadBalancerIp(number), 80), expect, rows, { tries }],
    ['outside-node-port', 'outside', tcp(nodeA, nodePort(number)), expect, rows, { tries }],
  ])
}

const unready = { server: 'a1', conditions: { ready: false, serving: false } } as const

/** A Service whose clients keep their endpoint or not, as each step says. */
const switched = (id: string, title: string, number: number, policy: 'Cluster' | 'Local'): Case => {
  const outside = policy === 'Local' ? (['a1', 'a2'] as const) : many
  return {
    id,
    title,
    steps: (['None', 'ClientIP', 'None'] as const).map((sessionAffinity) => {
      const hits = sessionAffinity === 'ClientIP' ? 'one' : 'several'
      const tries = 12
      return {
        after: `sessionAffinity is ${sessionAffinity}`,
        objects: balanced(id, number, many, { spec: { sessionAffinity, externalTrafficPolicy: policy } }),
        cells: inFamilies([
          ['pod-a', 'pod-a', tcp(clusterIp(number), 80), reaches(many, { hits }), [37], { tries }],
          ['load-balancer', 'outside', tcp(loadBalancerIp(number), 80), reaches(outside, { hits }), [37], { tries }],
          ['node-port', 'outside', tcp(nodeA, nodePort(number)), reaches(outside, { hits }), [37], { tries }],
        ]),
      }
    }),
  }
}

export const affinityCases: readonly Case[] = [
  switched('affinity-switched', 'Session affinity is switched on and off', 180, 'Cluster'),
  switched('affinity-switched-local', 'Session affinity is switched with externalTrafficPolicy Local', 181, 'Local'),
  {
    id: 'affinity',
    title: 'A client stays with its endpoint when others come, moves at once when it goes, and does not go back',
    steps: [
      { after: 'one endpoint', objects: withAffinity('affinity', 80, ['a1']), cells: allGet(80, 'a1', [37]) },
      { after: 'another came', objects: withAffinity('affinity', 80, ['a1', 'b1']), cells: allGet(80, 'a1', [37]) },
      { after: 'the first went', objects: withAffinity('affinity', 80, ['b1']), cells: allGet(80, 'b1', [39]) },
      {
        after: 'the first came back',
        objects: withAffinity('affinity', 80, ['a1', 'b1']),
        cells: allGet(80, 'b1', [37, 39]),
      },
    ],
  },
  {
    id: 'affinity-unready',
    title: 'A client moves at once when its endpoint becomes unready',
    steps: [
      { after: 'one endpoint', objects: withAffinity('affinity-unready', 81, ['a1']), cells: allGet(81, 'a1', [37]) },
      {
        after: 'it is unready, another is ready',
        objects: withAffinity('affinity-unready', 81, [unready, 'b1']),
        cells: allGet(81, 'b1', [39]),
      },
    ],
  },
  oneStep({
    id: 'affinity-connections',
    title: 'All connections of a client go to one of many endpoints',
    objects: withAffinity('affinity-many', 82, many),
    cells: (['pod-a', 'node-a', 'outside'] as const).map((client) => [
      client,
      client,
      tcp(client === 'outside' ? loadBalancerIp(82) : clusterIp(82), 80),
      reaches(many, { hits: 'one' }),
      [37],
    ]),
  }),
  oneStep({
    id: 'affinity-timeout',
    title: 'After the timeout a client may be given another endpoint; each new connection begins it anew',
    objects: [...withAffinity('affinity-short', 83, many, 1), ...withAffinity('affinity-refreshed', 84, many, 4)],
    cells: [
      [
        'expired',
        'pod-a',
        tcp(clusterIp(83), 80),
        reaches(many, { hits: 'several' }),
        [38],
        { tries: 8, spacing: { ms: 1400 } },
      ],
      [
        'refreshed',
        'pod-a',
        tcp(clusterIp(84), 80),
        reaches(many, { hits: 'one' }),
        [38],
        { tries: 8, spacing: { ms: 1400, atMostMs: 3500 } },
      ],
    ],
  }),
]
