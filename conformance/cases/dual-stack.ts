import { clusterIp, type Family, type Server } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { dropped, inFamilies, keepsSource, refused, tcp } from './cells.js'
import { service, slices, tcpPort } from './objects.js'

const ports = [{ name: '', protocol: 'TCP', port: 8080 }]

const endpointsIn = (name: string, family: Family, server: Server): KubernetesObject[] =>
  slices(name, [server], { ports, families: [family] })

/** Endpoints in one family only. */
const oneFamily = (family: Family, other: Family, number: number): Case => ({
  id: `endpoints-in-${family}-only`,
  title: `A dual-stack Service with endpoints in ${family} only is served in ${family} and refused in ${other}`,
  steps: [
    {
      after: 'start',
      objects: [
        service(`only-${family}`, number, { ports: [tcpPort(80)] }),
        ...endpointsIn(`only-${family}`, family, 'a1'),
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
  id: `single-stack-${family}`,
  title: `A Service of ${family} alone is served there; the same number in ${other} is nobody's`,
  steps: [
    {
      after: 'start',
      objects: [
        service(`single-${family}`, number, { ports: [tcpPort(80)], families: [family] }),
        ...endpointsIn(`single-${family}`, family, 'a1'),
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
        ...endpointsIn('families-differ', 'v4', 'a1'),
        ...endpointsIn('families-differ', 'v6', 'b1'),
      ],
      cells: [
        ...inFamilies(
          [{ id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(93), 80), expect: keepsSource(['a1']), rows: [13, 49] }],
          ['v4'],
        ),
        ...inFamilies(
          [{ id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(93), 80), expect: keepsSource(['b1']), rows: [13, 49] }],
          ['v6'],
        ),
      ],
    },
  ],
}

export const dualStackCases: readonly Case[] = [
  oneFamily('v4', 'v6', 90),
  oneFamily('v6', 'v4', 91),
  singleStack('v4', 'v6', 92),
  singleStack('v6', 'v4', 94),
  different,
]
