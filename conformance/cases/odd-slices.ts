import { clusterIp } from '../addresses.js'
import type { Case } from './case.js'
import { keepsSource, oneStep, refused, tcp, udp } from './cells.js'
import { headlessLabel, served, service, serviceProxyName, serviceProxyNameLabel, slices, tcpPort } from './objects.js'

const gone = { ready: false, serving: false, terminating: true }

export const oddSliceCases: readonly Case[] = [
  oneStep({
    id: 'several-slices',
    title: 'The endpoints of all slices of a Service are used, each with the ports of its own slice',
    objects: [
      service('several-slices', 198, { ports: [tcpPort(80, { name: 'web' }), tcpPort(81, { name: 'admin' })] }),
      ...slices('several-slices', ['a1'], {
        suffix: '-1',
        ports: [
          { name: 'web', protocol: 'TCP', port: 8080 },
          { name: 'admin', protocol: 'TCP', port: 8081 },
        ],
      }),
      ...slices('several-slices', ['b1'], { suffix: '-2', ports: [{ name: 'web', protocol: 'TCP', port: 9090 }] }),
    ],
    cells: [
      ['in-both', 'pod-a', tcp(clusterIp(198), 80), keepsSource(['a1:8080', 'b1:9090']), [18, 19]],
      ['in-one', 'pod-a', tcp(clusterIp(198), 81), keepsSource(['a1:8081']), [18, 19]],
    ],
  }),
  oneStep({
    id: 'one-ip-in-two-slices',
    title: 'An address in two slices, terminating in one of them, is used',
    objects: [
      service('two-slices', 17, { ports: [tcpPort(80)] }),
      ...slices('two-slices', [{ server: 'a1', conditions: gone }], { suffix: '-1' }),
      ...slices('two-slices', ['a1'], { suffix: '-2' }),
    ],
    cells: [['pod-a', 'pod-a', tcp(clusterIp(17), 80), keepsSource(['a1']), [12]]],
  }),
  oneStep({
    id: 'slice-without-label',
    title: 'A slice that names no Service belongs to none',
    objects: [
      service('unlabelled', 18, { ports: [tcpPort(80)] }),
      ...slices('unlabelled', ['a1']).map((slice) => ({
        ...slice,
        metadata: { ...slice.metadata, labels: {} },
      })),
    ],
    cells: [['pod-a', 'pod-a', tcp(clusterIp(18), 80), refused, [4, 20]]],
  }),
  oneStep({
    id: 'slice-port-of-another-protocol',
    title: 'A slice port with the name but not the protocol of the Service port does not serve it',
    objects: [
      service('other-protocol', 25, { ports: [tcpPort(80, { name: 'web' })] }),
      ...slices('other-protocol', ['a1'], { ports: [{ name: 'web', protocol: 'UDP', port: 8080 }] }),
    ],
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(25), 80), refused, [18, 20]],
      ['pod-a-udp', 'pod-a', udp(clusterIp(25), 80), refused, [14, 18]],
    ],
  }),
  oneStep({
    id: 'slice-with-proxy-name',
    title: "Another proxy's name on a slice says nothing: the name on the Service decides",
    objects: ['another', serviceProxyName].flatMap((name, index) => [
      service(`proxy-name-on-slice-${index}`, 21 + index, { ports: [tcpPort(80)] }),
      ...slices(`proxy-name-on-slice-${index}`, ['a1'], { labels: { [serviceProxyNameLabel]: name } }),
    ]),
    cells: [
      ['another', 'pod-a', tcp(clusterIp(21), 80), keepsSource(['a1']), [2]],
      ['specialised', 'pod-a', tcp(clusterIp(22), 80), keepsSource(['a1']), [2]],
    ],
  }),
  oneStep({
    id: 'headless-label',
    title: 'The headless label says that a slice is left out; on a Service it says nothing',
    objects: [
      ...served('headless-label', 23, ['a1'], { ports: [tcpPort(80)], labels: { [headlessLabel]: '' } }),
      service('headless-slice', 24, { ports: [tcpPort(80)] }),
      ...slices('headless-slice', ['a1'], { labels: { [headlessLabel]: '' } }),
    ],
    cells: [
      ['on-service', 'pod-a', tcp(clusterIp(23), 80), keepsSource(['a1']), [1]],
      ['on-slice', 'pod-a', tcp(clusterIp(24), 80), refused, [3]],
    ],
  }),
  oneStep({
    id: 'fqdn-slice',
    title: 'A slice of names beside slices of addresses is ignored',
    objects: [
      ...served('fqdn', 19, ['a1'], { ports: [tcpPort(80)] }),
      ...slices('fqdn', ['b1'], { suffix: '-names', families: ['IPv4'] }).map((slice) => ({
        ...slice,
        addressType: 'FQDN',
        endpoints: [{ addresses: ['b1.example.com'], conditions: { ready: true } }],
      })),
    ],
    cells: [['pod-a', 'pod-a', tcp(clusterIp(19), 80), keepsSource(['a1']), [6]]],
  }),
]
