import { families } from '@kpng/api'
import { addressOf, clusterIp, externalIp, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, refused, tcp } from './cells.js'
import { served, service, slices, tcpPort } from './objects.js'

// Objects that an API server would refuse today. Old ones, and other sources, still have them; one bad item must cost just itself.

const ports = [{ name: '', protocol: 'TCP', port: 8080 }]

/** Puts an address that is none before the good ones of each slice. */
const withBadAddress = (slice: KubernetesObject): KubernetesObject => ({
  ...slice,
  endpoints: [
    { addresses: ['10.244.1.999'], conditions: { ready: true }, nodeName: 'node-a' },
    ...(slice.endpoints as unknown[]),
  ],
})

const wholeBadObjects: readonly KubernetesObject[] = [
  {
    ...service('bad-cluster-ip', 119, { ports: [tcpPort(80)] }),
    spec: { type: 'ClusterIP', clusterIP: 'no address', clusterIPs: ['no address'], ports: [{ port: 80 }] },
  },
  {
    ...service('bad-port', 118, { ports: [] }),
    spec: { clusterIP: clusterIp(118).IPv4, ports: [{ port: 0 }, { port: 70_000 }] },
  },
  { ...(slices('nobody', ['a1'], { ports })[0] as KubernetesObject), endpoints: [{ addresses: [] }] },
]

export const badObjectCases: readonly Case[] = [
  {
    id: 'bad-objects',
    title: 'Bad items are skipped; the rest of the object, and every other Service, is served',
    alone: true,
    manifestsOnly: 'an API server refuses such objects',
    steps: [
      {
        after: 'start',
        objects: [
          ...wholeBadObjects,
          ...served('good', 110, ['a1', 'b1'], { ports: [tcpPort(80)] }),
          service('bad-endpoint', 111, { ports: [tcpPort(80)] }),
          ...slices('bad-endpoint', ['a1'], { ports }).map(withBadAddress),
          service('port-without-number', 112, {
            ports: [tcpPort(80, { name: 'http' }), tcpPort(90, { name: 'unset' }), tcpPort(91, { name: 'zero' })],
          }),
          ...slices('port-without-number', ['a1'], {
            ports: [
              { name: 'http', protocol: 'TCP', port: 8080 },
              { name: 'unset', protocol: 'TCP', port: null },
              { name: 'zero', protocol: 'TCP', port: 0 },
            ],
          }),
          ...served('bad-external-ip', 113, ['a1', 'b1'], {
            ports: [tcpPort(80)],
            spec: { externalIPs: ['192.0.2', '', ...families.map((family) => externalIp(113)[family])] },
          }),
          ...served('bad-source-range', 114, ['a1', 'b1'], {
            ports: [tcpPort(80, { nodePort: nodePort(114) })],
            spec: {
              type: 'LoadBalancer',
              loadBalancerSourceRanges: ['everybody', '203.0.113.0/24', '2001:db8:113::/64', '10.0.0.0/99'],
            },
            ingress: [
              { ip: 'none' },
              ...families.map((family) => ({ ip: loadBalancerIp(114)[family] })),
              { hostname: 'x' },
            ],
          }),
        ],
        cells: inFamilies([
          { id: 'good', client: 'pod-a', to: tcp(clusterIp(110), 80), expect: keepsSource(['a1', 'b1']), rows: [11] },
          {
            id: 'beside-bad-endpoint',
            client: 'pod-a',
            to: tcp(clusterIp(111), 80),
            expect: keepsSource(['a1']),
            rows: [11],
          },
          {
            id: 'beside-bad-port',
            client: 'pod-a',
            to: tcp(clusterIp(112), 80),
            expect: keepsSource(['a1']),
            rows: [11],
          },
          { id: 'port-unset', client: 'pod-a', to: tcp(clusterIp(112), 90), expect: refused, rows: [11, 20] },
          { id: 'port-zero', client: 'pod-a', to: tcp(clusterIp(112), 91), expect: refused, rows: [11, 20] },
          {
            id: 'beside-bad-external-ip',
            client: 'outside',
            to: tcp(externalIp(113), 80),
            expect: masqueraded(['a1', 'b1']),
            rows: [11],
          },
          {
            id: 'beside-bad-source-range',
            client: 'outside',
            to: tcp(loadBalancerIp(114), 80),
            expect: masqueraded(['a1', 'b1']),
            rows: [11, 45],
          },
          {
            id: 'not-in-source-ranges',
            client: 'node-b',
            to: tcp(loadBalancerIp(114), 80),
            expect: dropped,
            rows: [11, 45],
          },
          {
            id: 'its-node-port',
            client: 'node-b',
            to: tcp(addressOf['node-a'], nodePort(114)),
            expect: masqueraded(['a1', 'b1']),
            rows: [11],
          },
        ]),
      },
    ],
  },
]
