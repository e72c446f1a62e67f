import { clusterIp, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, keepsSource, masqueraded, refused, tcp } from './cells.js'
import { both, exposed } from './objects.js'

export const endpointChangeCases: readonly Case[] = [
  {
    id: 'endpoint-moved',
    title: 'New connections go where the endpoint went',
    steps: (['a1', 'b1', 'a2'] as const).map((server) => ({
      after: `the endpoint is ${server}`,
      objects: exposed('endpoint-moved', 120, [server]),
      cells: inFamilies([
        ['pod-a', 'pod-a', tcp(clusterIp(120), 80), keepsSource([server]), [24]],
        ['outside-node-port', 'outside', tcp(nodeA, nodePort(120)), masqueraded([server]), [24]],
        ['outside-load-balancer', 'outside', tcp(loadBalancerIp(120), 80), masqueraded([server]), [24]],
      ]),
    })),
  },
  {
    id: 'endpoints-come-and-go',
    title: 'From one endpoint to two, to none, and to one again',
    steps: ([['a1'], both, [], ['a2']] as const).map((servers) => ({
      after: `endpoints: ${servers.join(', ') || 'none'}`,
      objects: exposed('endpoints-come-and-go', 121, servers),
      cells: inFamilies([
        ['pod-a', 'pod-a', tcp(clusterIp(121), 80), servers.length > 0 ? keepsSource(servers) : refused, [20, 24]],
        [
          'outside',
          'outside',
          tcp(loadBalancerIp(121), 80),
          servers.length > 0 ? masqueraded(servers) : refused,
          [20, 24],
        ],
      ]),
    })),
  },
  {
    id: 'endpoint-becomes-unready',
    title: 'An endpoint that becomes unready gets no new connections; terminating ones stand in when none is left',
    steps: [
      { after: 'both ready', expect: both, endpoints: both },
      {
        after: 'one unready',
        expect: ['a1'],
        endpoints: ['a1', { server: 'b1', conditions: { ready: false } }] as const,
      },
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
      cells: inFamilies([['pod-a', 'pod-a', tcp(clusterIp(128), 80), keepsSource(expect), [24, 25]]]),
    })),
  },
]

export const openConnectionCases: readonly Case[] = [
  {
    id: 'untouched-connection',
    title: 'An open connection is not disturbed by changes to other Services',
    steps: [1, 2, 3, 4].map((round) => ({
      after: `${round === 1 ? 'start' : `change ${round - 1} of others`}`,
      objects: exposed('untouched', 131, both),
      cells: inFamilies([
        ['pod-a', 'pod-a', tcp(clusterIp(131), 80), keepsSource(both, { hits: 'one' }), [22], { flow: 'pod-a' }],
        [
          'outside',
          'outside',
          tcp(nodeA, nodePort(131)),
          masqueraded(both, { hits: 'one' }),
          [22],
          { flow: 'outside' },
        ],
      ]),
    })),
  },
  {
    id: 'connection-outlives-endpoint',
    title: 'An open TCP connection to an endpoint that left the Service goes on; new ones go elsewhere',
    steps: both.map((server) => ({
      after: `the endpoint is ${server}`,
      objects: exposed('outlives', 132, [server]),
      cells: inFamilies([
        ['open', 'pod-a', tcp(clusterIp(132), 80), keepsSource(['a1']), [22], { flow: 'open' }],
        ['new', 'pod-a', tcp(clusterIp(132), 80), keepsSource([server]), [24]],
      ]),
    })),
  },
]
