import { clusterIp, externalIp, ipsOf, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { dropped, keepsSource, masqueraded, oneStep, refused, tcp } from './cells.js'
import { served, service, slices, tcpPort } from './objects.js'

// Objects that an API server would refuse today. Old ones, and other sources, still have them; one bad item must cost just itself.

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
  { ...(slices('nobody', ['a1'])[0] as KubernetesObject), endpoints: [{ addresses: [] }] },
]

export const badObjectCases: readonly Case[] = [
  oneStep({
    id: 'bad-objects',
    title: 'Bad items are skipped; the rest of the object, and every other Service, is served',
    alone: true,
    manifestsOnly: 'an API server refuses such objects',
    objects: [
      ...wholeBadObjects,
      ...served('good', 110, ['a1', 'b1'], { ports: [tcpPort(80)] }),
      service('bad-endpoint', 111, { ports: [tcpPort(80)] }),
      ...slices('bad-endpoint', ['a1']).map(withBadAddress),
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
        spec: { externalIPs: ['192.0.2', '', ...ipsOf(externalIp(113))] },
      }),
      ...served('bad-source-range', 114, ['a1', 'b1'], {
        ports: [tcpPort(80, { nodePort: nodePort(114) })],
        spec: {
          type: 'LoadBalancer',
          loadBalancerSourceRanges: ['everybody', '203.0.113.0/24', '2001:db8:113::/64', '10.0.0.0/99'],
        },
        ingress: [{ ip: 'none' }, ...ipsOf(loadBalancerIp(114)).map((ip) => ({ ip })), { hostname: 'x' }],
      }),
    ],
    cells: [
      ['good', 'pod-a', tcp(clusterIp(110), 80), keepsSource(['a1', 'b1']), [11]],
      ['beside-bad-endpoint', 'pod-a', tcp(clusterIp(111), 80), keepsSource(['a1']), [11]],
      ['beside-bad-port', 'pod-a', tcp(clusterIp(112), 80), keepsSource(['a1']), [11]],
      ['port-unset', 'pod-a', tcp(clusterIp(112), 90), refused, [11, 20]],
      ['port-zero', 'pod-a', tcp(clusterIp(112), 91), refused, [11, 20]],
      ['beside-bad-external-ip', 'outside', tcp(externalIp(113), 80), masqueraded(['a1', 'b1']), [11]],
      ['beside-bad-source-range', 'outside', tcp(loadBalancerIp(114), 80), masqueraded(['a1', 'b1']), [11, 45]],
      ['not-in-source-ranges', 'node-b', tcp(loadBalancerIp(114), 80), dropped, [11, 45]],
      ['its-node-port', 'node-b', tcp(nodeA, nodePort(114)), masqueraded(['a1', 'b1']), [11]],
    ],
  }),
]
