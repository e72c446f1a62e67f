import type { Deviations } from './deviation.js'

/** kpng's ipvs backend: the node itself has the addresses of Services. */
export const ipvs: Deviations = [
  {
    cells: [
      'external-ip/other-port.*',
      'load-balancer-vip/other-port.*',
      'specialised-headless/other-port.*',
      'specialised-slices-by-hand/other-port.*',
      'whole-address-given/1/*',
      'whole-address-given/3/*',
    ],
    reason: 'the node has the address of the Service, so it refuses other ports itself',
    link: 'docs/ipvs.md#where-it-differs-from-kube-proxy',
    instead: { outcome: 'refused' },
  },
  {
    cells: ['affinity-timeout/expired.*'],
    reason: 'IPVS remembers a closed connection for two minutes, and session affinity begins to time out only then',
    link: 'docs/ipvs.md#session-affinity',
    instead: { hits: 'one' },
  },
  {
    cells: ['node-port/second-address*'],
    reason: "ipvs mode serves node ports at all of the node's addresses unless nodePortAddresses says otherwise",
    link: 'docs/ipvs.md#where-it-differs-from-kube-proxy',
    instead: { outcome: 'reached', servers: ['a1', 'b1'], source: 'node', hits: 'some' },
  },
  {
    cells: ['foreign-nat-rules/1/later-chain.*'],
    reason: 'IPVS takes packets in the hook input, so nat rules of others in prerouting always come before it',
    link: 'docs/ipvs.md#where-it-differs-from-kube-proxy',
    instead: { outcome: 'reached', servers: ['a2'], source: 'kept' },
  },
]
