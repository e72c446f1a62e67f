import type { Family } from '@kpng/api'
import { clusterIp, familySuffix, type Server } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { dropped, inFamilies, keepsSource, refused, tcp } from './cells.js'
import { service, slices, tcpPort } from './objects.js'

const ports = [{ name: '', protocol: 'TCP', port: 8080 }]

const endpointsIn = (name: string, family: Family, server: Server): KubernetesObject[] =>
  slices(name, [server], { ports, families: [family] })

/** Endpoints in one family only. */
const oneFamily = (family: Family, other: Family, number: number): Case => ({
  id: `endpoints-in-${familySuffix[family]}-only`,
  title: `A dual-stack Service with endpoints in ${familySuffix[family]} only is served in ${familySuffix[family]} and refused in ${familySuffix[other]}`,
  steps: [
    {
      after: 'start',
      objects: [
        service(`only-${familySuffix[family]}`, number, { ports: [tcpPort(80)] }),
        ...endpointsIn(`only-${familySuffix[family]}`, family, 'a1'),
      ],
      cells: [
        ...inFamilies(
          [{ id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(number), 80), expect: keepsSource(['a1']), rows: [49] }],
          [family],
        ),
        ...inFamilies(
          [{ id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(number), 80), expect: refused, rows: [20, 49] }],
          [other],
        ),
      ],
    },
  ],
})

/** A Service of one family. */
const singleStack = (family: Family, other: Family, number: number): Case => ({
  id: `single-stack-${familySuffix[family]}`,
  title: `A Service of ${familySuffix[family]} alone is served there; the same number in ${familySuffix[other]} is nobody's`,
  steps: [
    {
      after: 'start',
      objects: [
        service(`single-${familySuffix[family]}`, number, { ports: [tcpPort(80)], families: [family] }),
        ...endpointsIn(`single-${familySuffix[family]}`, family, 'a1'),
      ],
      cells: [
        ...inFamilies(
          [
            {
              id: 'pod-a',
              client: 'pod-a',
              to: tcp(clusterIp(number), 80),
              expect: keepsSource(['a1']),
              rows: [13, 49],
            },
          ],
          [family],
        ),
        ...inFamilies(
          [{ id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(number), 80), expect: dropped, rows: [9, 49] }],
          [other],
        ),
      ],
    },
  ],
})

const different: Case = {
  id: 'families-differ',
  title: 'Each family has its own endpoints',
  steps: [
    {
      after: 'start',
      objects: [
        service('families-differ', 93, { ports: [tcpPort(80)] }),
        ...endpointsIn('families-differ', 'IPv4', 'a1'),
        ...endpointsIn('families-differ', 'IPv6', 'b1'),
      ],
      cells: [
        ...inFamilies(
          [{ id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(93), 80), expect: keepsSource(['a1']), rows: [13, 49] }],
          ['IPv4'],
        ),
        ...inFamilies(
          [{ id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(93), 80), expect: keepsSource(['b1']), rows: [13, 49] }],
          ['IPv6'],
        ),
      ],
    },
  ],
}

export const dualStackCases: readonly Case[] = [
  oneFamily('IPv4', 'IPv6', 90),
  oneFamily('IPv6', 'IPv4', 91),
  singleStack('IPv4', 'IPv6', 92),
  singleStack('IPv6', 'IPv4', 94),
  different,
]
