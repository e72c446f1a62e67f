import { clusterIp } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, inFamilies, keepsSource, masqueraded, reaches, refused, tcp, udp } from './cells.js'
import { served, service, slices, tcpPort, udpPort } from './objects.js'

const both = ['a1', 'b1']

export const clusterIpCases: readonly Case[] = [
  {
    id: 'cluster-ip',
    title: 'A cluster IP leads to every ready endpoint; only clients from outside the cluster are masqueraded',
    steps: [
      {
        after: 'start',
        objects: served('cluster-ip', 1, ['a1', 'b1'], {
          ports: [tcpPort(80, { name: 'http' }), udpPort(5353, { name: 'dns' })],
        }),
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(1), 80), expect: keepsSource(both), rows: [13, 24] },
          { id: 'node-a', client: 'node-a', to: tcp(clusterIp(1), 80), expect: masqueraded(both), rows: [13] },
          { id: 'outside', client: 'outside', to: tcp(clusterIp(1), 80), expect: masqueraded(both), rows: [60] },
          { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(1), 5353), expect: keepsSource(both), rows: [13, 52] },
          {
            id: 'node-a-udp',
            client: 'node-a',
            to: udp(clusterIp(1), 5353),
            expect: masqueraded(both),
            rows: [13, 52],
          },
          { id: 'outside-udp', client: 'outside', to: udp(clusterIp(1), 5353), expect: masqueraded(both), rows: [60] },
          {
            id: 'evenly',
            client: 'pod-a',
            to: tcp(clusterIp(1), 80),
            expect: reaches(both, { hits: 'evenly' }),
            rows: [24],
          },
          {
            id: 'much-data',
            client: 'pod-a',
            to: tcp(clusterIp(1), 80),
            expect: reaches(both, { hits: 'some' }),
            rows: [13],
            tries: 2,
            bytes: 1_000_000,
          },
        ]),
      },
    ],
  },
  {
    id: 'cluster-ip-other-port',
    title: 'Another port of a cluster IP is refused',
    steps: [
      {
        after: 'start',
        objects: served('other-port', 8, ['a1', 'b1'], { ports: [tcpPort(80)] }),
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(8), 81), expect: refused, rows: [14] },
          { id: 'pod-a-target-port', client: 'pod-a', to: tcp(clusterIp(8), 8080), expect: refused, rows: [14] },
          { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(8), 80), expect: refused, rows: [14, 18] },
          { id: 'node-a', client: 'node-a', to: tcp(clusterIp(8), 81), expect: refused, rows: [14] },
          { id: 'outside', client: 'outside', to: tcp(clusterIp(8), 81), expect: refused, rows: [14] },
        ]),
      },
    ],
  },
  {
    id: 'several-ports',
    title: 'Each port of a Service leads to its own target port, and TCP and UDP of the same number are two ports',
    steps: [
      {
        after: 'start',
        objects: served('several-ports', 2, ['a1'], {
          ports: [
            tcpPort(80, { name: 'http', targetPort: 8080 }),
            tcpPort(443, { name: 'https', targetPort: 8081 }),
            tcpPort(53, { name: 'dns-tcp', targetPort: 9090 }),
            udpPort(53, { name: 'dns', targetPort: 8081 }),
          ],
        }),
        cells: inFamilies([
          { id: 'first', client: 'pod-a', to: tcp(clusterIp(2), 80), expect: keepsSource(['a1:8080']), rows: [18] },
          { id: 'second', client: 'pod-a', to: tcp(clusterIp(2), 443), expect: keepsSource(['a1:8081']), rows: [18] },
          {
            id: 'same-number-tcp',
            client: 'pod-a',
            to: tcp(clusterIp(2), 53),
            expect: keepsSource(['a1:9090']),
            rows: [18],
          },
          {
            id: 'same-number-udp',
            client: 'pod-a',
            to: udp(clusterIp(2), 53),
            expect: keepsSource(['a1:8081']),
            rows: [18, 52],
          },
        ]),
      },
    ],
  },
  {
    id: 'target-port-per-slice',
    title: 'A target port by name may be another number in each slice, and missing in one',
    steps: [
      {
        after: 'start',
        objects: [
          service('per-slice', 4, {
            ports: [
              tcpPort(80, { name: 'http', targetPort: 'web' }),
              tcpPort(90, { name: 'admin', targetPort: 'admin' }),
            ],
          }),
          ...slices('per-slice', ['a1'], { ports: [{ name: 'http', protocol: 'TCP', port: 8080 }], suffix: '-1' }),
          ...slices('per-slice', ['b1'], {
            ports: [
              { name: 'http', protocol: 'TCP', port: 9090 },
              { name: 'admin', protocol: 'TCP', port: 8081 },
            ],
            suffix: '-2',
          }),
        ],
        cells: inFamilies([
          {
            id: 'each-its-own',
            client: 'pod-a',
            to: tcp(clusterIp(4), 80),
            expect: keepsSource(['a1:8080', 'b1:9090']),
            rows: [19],
          },
          {
            id: 'in-one-slice',
            client: 'pod-a',
            to: tcp(clusterIp(4), 90),
            expect: keepsSource(['b1:8081']),
            rows: [19],
          },
        ]),
      },
    ],
  },
  {
    id: 'hairpin',
    title: 'A pod that reaches itself through its Service is masqueraded',
    steps: [
      {
        after: 'start',
        objects: served('hairpin', 6, ['a1'], { ports: [tcpPort(80, { name: 'tcp' }), udpPort(80, { name: 'udp' })] }),
        cells: inFamilies([
          { id: 'itself', client: 'a1', to: tcp(clusterIp(6), 80), expect: masqueraded(['a1']), rows: [21] },
          { id: 'itself-udp', client: 'a1', to: udp(clusterIp(6), 80), expect: masqueraded(['a1']), rows: [21] },
          { id: 'another', client: 'a2', to: tcp(clusterIp(6), 80), expect: keepsSource(['a1']), rows: [21] },
        ]),
      },
    ],
  },
  {
    id: 'host-network-endpoint',
    title: "An endpoint in the node's own network is reached like any other",
    steps: [
      {
        after: 'start',
        objects: served('host-network', 7, ['node-a'], { ports: [tcpPort(443)] }),
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(7), 443), expect: keepsSource(['node-a']), rows: [13] },
          { id: 'node-a', client: 'node-a', to: tcp(clusterIp(7), 443), expect: reaches(['node-a']), rows: [13] },
        ]),
      },
    ],
  },
  {
    id: 'unallocated-cluster-ip',
    title: 'A cluster IP that no Service has is dropped, not routed away',
    steps: [
      {
        after: 'start',
        objects: [],
        cells: inFamilies([
          { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(999), 80), expect: dropped, rows: [9] },
          { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(999), 80), expect: dropped, rows: [9] },
          { id: 'node-a', client: 'node-a', to: tcp(clusterIp(999), 80), expect: dropped, rows: [9] },
          { id: 'outside', client: 'outside', to: tcp(clusterIp(999), 80), expect: dropped, rows: [9] },
        ]),
      },
    ],
  },
]
