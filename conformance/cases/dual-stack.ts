import type { Family } from '@kpng/api'
import { clusterIp, familySuffix, type Server } from '../addresses.js'
import type { Case, Expectation, KubernetesObject } from './case.js'
import { dropped, inFamilies, keepsSource, refused, tcp } from './cells.js'
import { service, slices, tcpPort } from './objects.js'

const ports = [tcpPort(80)]

const endpointsIn = (name: string, family: Family, server: Server): KubernetesObject[] =>
  slices(name, [server], { families: [family] })

type InFamily = readonly [Family, Expectation, checklist: readonly number[]]

/** A Service that is asked at its cluster IP, with another expectation in each family. */
const eachFamily = (
  id: string,
  title: string,
  number: number,
  objects: readonly KubernetesObject[],
  inEach: readonly [InFamily, InFamily],
): Case => ({
  id,
  title,
  steps: [
    {
      after: 'start',
      objects,
      cells: inEach.flatMap(([family, expect, rows]) =>
        inFamilies([['pod-a', 'pod-a', tcp(clusterIp(number), 80), expect, rows]], [family]),
      ),
    },
  ],
})

/** Endpoints in one family only. */
function oneFamily(family: Family, other: Family, number: number): Case {
  const here = familySuffix[family]
  return eachFamily(
    `endpoints-in-${here}-only`,
    `A dual-stack Service with endpoints in ${here} only is served in ${here} and refused in ${familySuffix[other]}`,
    number,
    [service(`only-${here}`, number, { ports }), ...endpointsIn(`only-${here}`, family, 'a1')],
    [
      [family, keepsSource(['a1']), [49]],
      [other, refused, [20, 49]],
    ],
  )
}

/** A Service of one family. */
function singleStack(family: Family, other: Family, number: number): Case {
  const here = familySuffix[family]
  return eachFamily(
    `single-stack-${here}`,
    `A Service of ${here} alone is served there; the same number in ${familySuffix[other]} is nobody's`,
    number,
    [service(`single-${here}`, number, { ports, families: [family] }), ...endpointsIn(`single-${here}`, family, 'a1')],
    [
      [family, keepsSource(['a1']), [13, 49]],
      [other, dropped, [9, 49]],
    ],
  )
}

export const dualStackCases: readonly Case[] = [
  eachFamily(
    'ipv6-first',
    'A dual-stack Service whose first family is IPv6 is served in both',
    195,
    [
      service('ipv6-first', 195, { ports, families: ['IPv6', 'IPv4'] }),
      ...endpointsIn('ipv6-first', 'IPv6', 'a1'),
      ...endpointsIn('ipv6-first', 'IPv4', 'a1'),
    ],
    [
      ['IPv6', keepsSource(['a1']), [13, 49]],
      ['IPv4', keepsSource(['a1']), [13, 49]],
    ],
  ),
  oneFamily('IPv4', 'IPv6', 90),
  oneFamily('IPv6', 'IPv4', 91),
  singleStack('IPv4', 'IPv6', 92),
  singleStack('IPv6', 'IPv4', 94),
  eachFamily(
    'families-differ',
    'Each family has its own endpoints',
    93,
    [
      service('families-differ', 93, { ports }),
      ...endpointsIn('families-differ', 'IPv4', 'a1'),
      ...endpointsIn('families-differ', 'IPv6', 'b1'),
    ],
    [
      ['IPv4', keepsSource(['a1']), [13, 49]],
      ['IPv6', keepsSource(['b1']), [13, 49]],
    ],
  ),
]
