import { clusterIp } from '../addresses.js'
import type { Case } from './case.js'
import { inFamilies, keepsSource, refused, tcp, udp } from './cells.js'
import { headlessLabel, served, service, serviceProxyName, serviceProxyNameLabel, slices, tcpPort } from './objects.js'

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
    id: 'slice-port-of-another-protocol',
    title: 'A slice port with the name but not the protocol of the Service port does not serve it',
    steps: [
      {
        after: 'start',
        objects: [
          service('other-protocol', 25, { ports: [tcpPort(80, { name: 'web' })] }),
          ...slices('other-protocol', ['a1'], { ports: [{ name: 'web', protocol: 'UDP', port: 8080 }] }),
        ],
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(25), 80), expect: refused, rows: [18, 20] },
          { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(25), 80), expect: refused, rows: [14, 18] },
        ]),
      },
    ],
  },
  {
    id: 'slice-with-proxy-name',
    title: "Another proxy's name on a slice says nothing: the name on the Service decides",
    steps: [
      {
        after: 'start',
        objects: ['another', serviceProxyName].flatMap((name, index) => [
          service(`proxy-name-on-slice-${index}`, 21 + index, { ports: [tcpPort(80)] }),
          ...slices(`proxy-name-on-slice-${index}`, ['a1'], { ports, labels: { [serviceProxyNameLabel]: name } }),
        ]),
        cells: inFamilies([
          { id: 'another', client: 'pod-a', to: tcp(clusterIp(21), 80), expect: keepsSource(['a1']), rows: [2] },
          { id: 'specialised', client: 'pod-a', to: tcp(clusterIp(22), 80), expect: keepsSource(['a1']), rows: [2] },
        ]),
      },
    ],
  },
  {
    id: 'headless-label',
    title: 'The headless label says that a slice is left out; on a Service it says nothing',
    steps: [
      {
        after: 'start',
        objects: [
          ...served('headless-label', 23, ['a1'], { ports: [tcpPort(80)], labels: { [headlessLabel]: '' } }),
          service('headless-slice', 24, { ports: [tcpPort(80)] }),
          ...slices('headless-slice', ['a1'], { ports, labels: { [headlessLabel]: '' } }),
        ],
        cells: inFamilies([
          { id: 'on-service', client: 'pod-a', to: tcp(clusterIp(23), 80), expect: keepsSource(['a1']), rows: [1] },
          { id: 'on-slice', client: 'pod-a', to: tcp(clusterIp(24), 80), expect: refused, rows: [3] },
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
