import { clusterIp } from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, keepsSource, refused, tcp } from './cells.js'
import { served, service, slices, tcpPort } from './objects.js'

const gone = { ready: false, serving: false, terminating: true }

const ports = [{ name: '', protocol: 'TCP', port: 8080 }]

export const oddSliceCases: readonly Case[] = [
  {
    id: 'one-ip-in-two-slices',
    title: 'An address in two slices, terminating in one of them, is used',
    steps: [
      {
        after: 'start',
        objects: [
          service('two-slices', 17, { ports: [tcpPort(80)] }),
          ...slices('two-slices', [{ server: 'a1', conditions: gone }], { ports, suffix: '-1' }),
          ...slices('two-slices', ['a1'], { ports, suffix: '-2' }),
        ],
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(17), 80), expect: keepsSource(['a1']), rows: [12] },
        ]),
      },
    ],
  },
  {
    id: 'slice-without-label',
    title: 'A slice that names no Service belongs to none',
    steps: [
      {
        after: 'start',
        objects: [
          service('unlabelled', 18, { ports: [tcpPort(80)] }),
          ...slices('unlabelled', ['a1'], { ports }).map((slice) => ({
            ...slice,
            metadata: { ...slice.metadata, labels: {} },
          })),
        ],
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(18), 80), expect: refused, rows: [4, 20] },
        ]),
      },
    ],
  },
  {
    id: 'fqdn-slice',
    title: 'A slice of names beside slices of addresses is ignored',
    steps: [
      {
        after: 'start',
        objects: [
          ...served('fqdn', 19, ['a1'], { ports: [tcpPort(80)] }),
          ...slices('fqdn', ['b1'], { ports, suffix: '-names', families: ['IPv4'] }).map((slice) => ({
            ...slice,
            addressType: 'FQDN',
            endpoints: [{ addresses: ['b1.example.com'], conditions: { ready: true } }],
          })),
        ],
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(19), 80), expect: keepsSource(['a1']), rows: [6] },
        ]),
      },
    ],
  },
]
