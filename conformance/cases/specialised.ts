import { clusterIp, externalIp, ipsOf } from '../addresses.js'
import type { Case, KubernetesObject } from './case.js'
import { type CellSpec, inFamilies, keepsSource, masqueraded, oneStep, passed, refused, tcp, udp } from './cells.js'
import {
  both,
  type EndpointList,
  headlessLabel,
  type ServiceOptions,
  served,
  service,
  serviceProxyName,
  serviceProxyNameLabel,
  slicePorts,
  slices,
  tcpPort,
  udpPort,
} from './objects.js'
import { wholeAddress } from './whole-address.js'

// A specialised proxy serves the Services that carry its name, beside the proxy under test, which leaves them alone. The usual
// one is headless and has external IPs: it brings traffic in from outside and needs no cluster IP.

const named = { [serviceProxyNameLabel]: serviceProxyName }

const headlessService = (
  name: string,
  number: number,
  { spec, ...more }: Partial<ServiceOptions> = {},
): KubernetesObject =>
  service(name, number, {
    ports: ports(),
    labels: named,
    ...more,
    spec: { clusterIP: 'None', clusterIPs: ['None'], externalIPs: ipsOf(externalIp(number)), ...spec },
  })

const ports = () => [tcpPort(6000, { name: 'tcp' }), udpPort(6000, { name: 'udp' })]

/** With slices made by hand, which carry no label of their Service. */
const headless = (
  name: string,
  number: number,
  endpoints: EndpointList,
  options: Partial<ServiceOptions> = {},
): KubernetesObject[] => [
  headlessService(name, number, options),
  ...slices(name, endpoints, { ports: slicePorts(ports()) }),
]

/** The external IPs of a Service are served, from everywhere, and only on its port. */
const servedCells = (number: number): CellSpec[] => {
  const expect = masqueraded(both)
  const rows = [2, 17]
  const to = externalIp(number)
  return [
    ['outside', 'outside', tcp(to, 6000), expect, rows],
    ['outside-udp', 'outside', udp(to, 6000), expect, rows],
    ['pod-a', 'pod-a', tcp(to, 6000), expect, rows],
    ['pod-a-udp', 'pod-a', udp(to, 6000), expect, rows],
    ['node-a', 'node-a', tcp(to, 6000), expect, rows],
    ['node-a-udp', 'node-a', udp(to, 6000), expect, rows],
    ['other-port', 'outside', tcp(to, 6001), passed, rows],
  ]
}

const headlessCases: readonly Case[] = [
  oneStep({
    id: 'specialised-headless',
    title: 'A headless Service of the specialised proxy is served at its external IPs',
    specialised: true,
    objects: [
      headlessService('specialised-headless', 160),
      // As the EndpointSlice controller makes them.
      ...slices('specialised-headless', both, {
        ports: slicePorts(ports()),
        labels: { ...named, [headlessLabel]: '' },
      }),
    ],
    cells: servedCells(160),
  }),
  oneStep({
    id: 'specialised-slices-by-hand',
    title: "Slices made by hand serve the specialised proxy's Service without its label",
    specialised: true,
    objects: headless('specialised-by-hand', 161, both),
    cells: servedCells(161),
  }),
  oneStep({
    id: 'specialised-local',
    title: 'The specialised proxy follows externalTrafficPolicy Local',
    specialised: true,
    objects: headless('specialised-local', 162, both, { spec: { externalTrafficPolicy: 'Local' } }),
    cells: [
      ['outside', 'outside', tcp(externalIp(162), 6000), keepsSource(['a1']), [33]],
      ['pod-a', 'pod-a', tcp(externalIp(162), 6000), keepsSource(both), [34]],
      ['node-a', 'node-a', tcp(externalIp(162), 6000), masqueraded(both), [34]],
    ],
  }),
  {
    id: 'specialised-endpoints-change',
    title: 'The specialised proxy follows its endpoints; a UDP client in mid-flow too',
    specialised: true,
    steps: ([['a1'], ['b1'], [], ['a2']] as const).map((servers) => {
      const expect = servers.length > 0 ? masqueraded(servers) : refused
      return {
        after: `endpoints: ${servers.join(', ') || 'none'}`,
        objects: headless('specialised-changes', 163, servers),
        cells: inFamilies([
          ['new', 'outside', tcp(externalIp(163), 6000), expect, [20, 24]],
          ['flow', 'outside', udp(externalIp(163), 6000), expect, [53, 54], { flow: 'outside' }],
        ]),
      }
    }),
  },
]

const clusterIpCase: Case = oneStep({
  id: 'specialised-cluster-ip',
  title: 'A Service of the specialised proxy that has cluster IPs is served there, beside the main proxy',
  specialised: true,
  objects: served('specialised-cluster-ip', 164, both, { ports: ports(), labels: named }),
  cells: [
    ['pod-a', 'pod-a', tcp(clusterIp(164), 6000), keepsSource(both), [2, 13]],
    ['pod-a-udp', 'pod-a', udp(clusterIp(164), 6000), keepsSource(both), [2, 13]],
    ['node-a', 'node-a', tcp(clusterIp(164), 6000), masqueraded(both), [2, 13]],
    ['outside', 'outside', tcp(clusterIp(164), 6000), masqueraded(both), [2, 60]],
  ],
})

const besideCase: Case = {
  id: 'specialised-beside-main',
  title: "The main proxy's Services and open connections are not disturbed by the specialised proxy's",
  specialised: true,
  steps: [false, true, false].map((isThere) => ({
    after: `${isThere ? 'a' : 'no'} specialised Service with the same endpoints`,
    objects: [
      ...served('main-beside', 165, both, { ports: ports(), spec: { externalIPs: ipsOf(externalIp(165)) } }),
      ...(isThere ? headless('specialised-beside', 166, both) : []),
    ],
    cells: inFamilies([
      ['cluster-ip', 'pod-a', tcp(clusterIp(165), 6000), keepsSource(both), [2, 13]],
      ['cluster-ip-udp', 'pod-a', udp(clusterIp(165), 6000), keepsSource(both), [2, 13]],
      ['external-ip', 'outside', tcp(externalIp(165), 6000), masqueraded(both), [2]],
      [
        'open-connection',
        'outside',
        tcp(externalIp(165), 6000),
        masqueraded(both, { hits: 'one' }),
        [2, 22],
        { flow: 'open' },
      ],
      ['specialised', 'outside', tcp(externalIp(166), 6000), isThere ? masqueraded(both) : passed, [2]],
    ]),
  })),
}

const handedOverCase: Case = {
  id: 'specialised-handed-over',
  title: 'A Service that gets or loses the name of the specialised proxy is served by the one it now belongs to',
  specialised: true,
  steps: [undefined, named, undefined].map((labels) => ({
    after: labels ? 'it belongs to the specialised proxy' : 'it belongs to the main proxy',
    objects: served('handed-over', 167, both, {
      ports: ports(),
      spec: { externalIPs: ipsOf(externalIp(167)) },
      ...(labels && { labels }),
    }),
    cells: inFamilies([
      ['outside', 'outside', tcp(externalIp(167), 6000), masqueraded(both), [2, 17]],
      ['outside-udp', 'outside', udp(externalIp(167), 6000), masqueraded(both), [2, 17]],
    ]),
  })),
}

const affinityCase: Case = oneStep({
  id: 'specialised-affinity',
  title: 'The specialised proxy keeps a client at its endpoint, also if its connections are masqueraded',
  specialised: true,
  objects: headless('specialised-affinity', 169, ['a1', 'a2', 'b1', 'b2'], {
    spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } },
  }),
  cells: (['outside', 'pod-a', 'node-a'] as const).map((client) => [
    client,
    client,
    tcp(externalIp(169), 6000),
    masqueraded(['a1', 'a2', 'b1', 'b2'], { hits: 'one' }),
    [2, 37],
  ]),
})

const wholeAddressCase: Case = oneStep({
  id: 'specialised-whole-address',
  title: 'A headless Service of the specialised proxy has its external IPs as a whole',
  specialised: true,
  kpngOnly: wholeAddress.kpngOnly,
  objects: headless('specialised-whole', 168, both, { annotations: wholeAddress.annotations }),
  cells: [8080, 9090].flatMap((port) => {
    const expect = masqueraded(both.map((server) => `${server}:${port}`))
    const rows = [2, 90]
    return [
      [`outside-${port}`, 'outside', tcp(externalIp(168), port), expect, rows],
      [`outside-${port}-udp`, 'outside', udp(externalIp(168), port), expect, rows],
      [`pod-a-${port}`, 'pod-a', tcp(externalIp(168), port), expect, rows],
    ] as const
  }),
})

export const specialisedCases: readonly Case[] = [
  ...headlessCases,
  clusterIpCase,
  besideCase,
  handedOverCase,
  affinityCase,
  wholeAddressCase,
]
