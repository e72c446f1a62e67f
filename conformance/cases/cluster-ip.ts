import { addedServiceCidr, addressOf, clusterIp, ipsOf } from '../addresses.js'
import type { Case } from './case.js'
import { dropped, keepsSource, masqueraded, oneStep, reaches, refused, tcp, udp } from './cells.js'
import { both, served, service, slices, tcpAndUdp, tcpPort, udpPort } from './objects.js'

/** A cluster IP of the range that was added to the cluster. */
const fromAddedCidr = { IPv4: '10.97.0.10', IPv6: 'fd00:10:97::10' }

export const clusterIpCases: readonly Case[] = [
  oneStep({
    id: 'same-endpoints',
    title: 'Two Services with the same endpoints are served, each at its own addresses and ports',
    objects: [188, 189].flatMap((number) =>
      served(`same-endpoints-${number}`, number, both, { ports: [tcpPort(number === 188 ? 80 : 8000)] }),
    ),
    cells: [
      ['first', 'pod-a', tcp(clusterIp(188), 80), keepsSource(both), [13]],
      ['second', 'pod-a', tcp(clusterIp(189), 8000), keepsSource(both), [13]],
    ],
  }),
  oneStep({
    id: 'another-service-cidr',
    title: 'A Service from a ServiceCIDR that was added is served',
    objects: [
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'ServiceCIDR',
        metadata: { name: 'conformance-added' },
        spec: { cidrs: ipsOf(addedServiceCidr) },
      },
      ...served('another-service-cidr', 190, both, {
        ports: [tcpPort(80)],
        spec: { clusterIP: fromAddedCidr.IPv4, clusterIPs: ipsOf(fromAddedCidr) },
      }),
    ],
    cells: [
      ['pod-a', 'pod-a', tcp(fromAddedCidr, 80), keepsSource(both), [13]],
      ['node-a', 'node-a', tcp(fromAddedCidr, 80), masqueraded(both), [13]],
    ],
  }),
  oneStep({
    id: 'pod-to-pod',
    title: 'Packets between pods that name no Service are left alone, source address included',
    objects: served('pod-to-pod', 191, both, { ports: [tcpPort(80)] }),
    cells: [
      ['same-node', 'pod-a', tcp(addressOf.a1, 8080), keepsSource(['a1:8080']), [13]],
      ['other-node', 'pod-a', tcp(addressOf.b1, 8080), keepsSource(['b1:8080']), [13]],
      ['other-node-udp', 'pod-a', udp(addressOf.b1, 8080), keepsSource(['b1:8080']), [13]],
    ],
  }),
  oneStep({
    id: 'cluster-ip',
    title: 'A cluster IP leads to every ready endpoint; only clients from outside the cluster are masqueraded',
    objects: served('cluster-ip', 1, both, {
      ports: [tcpPort(80, { name: 'http' }), udpPort(5353, { name: 'dns' })],
    }),
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(1), 80), keepsSource(both), [13, 24]],
      ['node-a', 'node-a', tcp(clusterIp(1), 80), masqueraded(both), [13]],
      ['outside', 'outside', tcp(clusterIp(1), 80), masqueraded(both), [60]],
      ['pod-a-udp', 'pod-a', udp(clusterIp(1), 5353), keepsSource(both), [13, 52]],
      ['node-a-udp', 'node-a', udp(clusterIp(1), 5353), masqueraded(both), [13, 52]],
      ['outside-udp', 'outside', udp(clusterIp(1), 5353), masqueraded(both), [60]],
      ['evenly', 'pod-a', tcp(clusterIp(1), 80), reaches(both, { hits: 'evenly' }), [24]],
      [
        'much-data',
        'pod-a',
        tcp(clusterIp(1), 80),
        reaches(both, { hits: 'some' }),
        [13],
        { tries: 2, bytes: 1_000_000 },
      ],
    ],
  }),
  oneStep({
    id: 'cluster-ip-other-port',
    title: 'Another port of a cluster IP is refused',
    objects: served('other-port', 8, both, { ports: [tcpPort(80)] }),
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(8), 81), refused, [14]],
      ['pod-a-target-port', 'pod-a', tcp(clusterIp(8), 8080), refused, [14]],
      ['pod-a-udp', 'pod-a', udp(clusterIp(8), 80), refused, [14, 18]],
      ['node-a', 'node-a', tcp(clusterIp(8), 81), refused, [14]],
      ['outside', 'outside', tcp(clusterIp(8), 81), refused, [14]],
    ],
  }),
  oneStep({
    id: 'several-ports',
    title: 'Each port of a Service leads to its own target port, and TCP and UDP of the same number are two ports',
    objects: served('several-ports', 2, ['a1'], {
      ports: [
        tcpPort(80, { name: 'http', targetPort: 8080 }),
        tcpPort(443, { name: 'https', targetPort: 8081 }),
        tcpPort(53, { name: 'dns-tcp', targetPort: 9090 }),
        udpPort(53, { name: 'dns', targetPort: 8081 }),
      ],
    }),
    cells: [
      ['first', 'pod-a', tcp(clusterIp(2), 80), keepsSource(['a1:8080']), [18]],
      ['second', 'pod-a', tcp(clusterIp(2), 443), keepsSource(['a1:8081']), [18]],
      ['same-number-tcp', 'pod-a', tcp(clusterIp(2), 53), keepsSource(['a1:9090']), [18]],
      ['same-number-udp', 'pod-a', udp(clusterIp(2), 53), keepsSource(['a1:8081']), [18, 52]],
    ],
  }),
  oneStep({
    id: 'target-port-per-slice',
    title: 'A target port by name may be another number in each slice, and missing in one',
    objects: [
      service('per-slice', 4, {
        ports: [tcpPort(80, { name: 'http', targetPort: 'web' }), tcpPort(90, { name: 'admin', targetPort: 'admin' })],
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
    cells: [
      ['each-its-own', 'pod-a', tcp(clusterIp(4), 80), keepsSource(['a1:8080', 'b1:9090']), [19]],
      ['in-one-slice', 'pod-a', tcp(clusterIp(4), 90), keepsSource(['b1:8081']), [19]],
    ],
  }),
  oneStep({
    id: 'hairpin',
    title: 'A pod that reaches itself through its Service is masqueraded',
    objects: served('hairpin', 6, ['a1'], { ports: tcpAndUdp() }),
    cells: [
      ['itself', 'a1', tcp(clusterIp(6), 80), masqueraded(['a1']), [21]],
      ['itself-udp', 'a1', udp(clusterIp(6), 80), masqueraded(['a1']), [21]],
      ['another', 'a2', tcp(clusterIp(6), 80), keepsSource(['a1']), [21]],
    ],
  }),
  oneStep({
    id: 'host-network-endpoint',
    title: "An endpoint in the node's own network is reached like any other",
    objects: served('host-network', 7, ['node-a'], { ports: [tcpPort(443)] }),
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(7), 443), keepsSource(['node-a']), [13]],
      ['node-a', 'node-a', tcp(clusterIp(7), 443), reaches(['node-a']), [13]],
    ],
  }),
  oneStep({
    id: 'unallocated-cluster-ip',
    title: 'A cluster IP that no Service has is dropped, not routed away',
    objects: [],
    cells: [
      ['pod-a', 'pod-a', tcp(clusterIp(999), 80), dropped, [9]],
      ['pod-a-udp', 'pod-a', udp(clusterIp(999), 80), dropped, [9]],
      ['node-a', 'node-a', tcp(clusterIp(999), 80), dropped, [9]],
      ['outside', 'outside', tcp(clusterIp(999), 80), dropped, [9]],
    ],
  }),
]
