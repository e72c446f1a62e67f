import { addressOf, loadBalancerIp, nodePort } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, inFamilies, masqueraded, passed, tcp } from './cells.js'
import { exposed } from './exposed.js'

const nodeA = addressOf['node-a']

export const loadBalancerChangeCases: readonly Case[] = [
  {
    id: 'load-balancer-ip-withdrawn',
    title: 'A load-balancer IP that is withdrawn is left alone; the node port stays',
    steps: [true, false].map((there) => ({
      after: there ? 'it has the IP' : 'the IP is withdrawn',
      objects: exposed('lb-withdrawn', 129, ['a1'], there ? {} : { ingress: [] }),
      cells: inFamilies([
        {
          id: 'load-balancer',
          client: 'outside',
          to: tcp(loadBalancerIp(129), 80),
          expect: there ? masqueraded(['a1']) : passed,
          rows: [16, 22],
        },
        { id: 'node-port', client: 'outside', to: tcp(nodeA, nodePort(129)), expect: masqueraded(['a1']), rows: [22] },
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
        { id: 'in', client: 'outside', to: tcp(loadBalancerIp(130), 80), expect: masqueraded(['a1']), rows: [45] },
        {
          id: 'out',
          client: 'node-b',
          to: tcp(loadBalancerIp(130), 80),
          expect: guarded ? dropped : masqueraded(['a1']),
          rows: [45],
        },
      ]),
    })),
  },
]
