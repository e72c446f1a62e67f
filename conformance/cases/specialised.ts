import { families } from '@kpng/api'
import { clusterIp, externalIp, type Server } from '../addresses.js'
import type { Case, Cell, KubernetesObject } from './case.js'
import { inFamilies, keepsSource, masqueraded, passed, refused, tcp, udp } from './cells.js'
import {
  type EndpointOptions,
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

const both = ['a1', 'b1']
const named = { [serviceProxyNameLabel]: serviceProxyName }
const externalIps = (number: number) => families.map((family) => externalIp(number)[family])

const headlessService = (
  name: string,
  number: number,
  { spec, ...more }: Partial<ServiceOptions> = {},
): KubernetesObject =>
  service(name, number, {
    ports: ports(),
    labels: named,
    ...more,
    spec: { clusterIP: 'None', clusterIPs: ['None'], externalIPs: externalIps(number), ...spec },
  })

const ports = () => [tcpPort(6000, { name: 'tcp' }), udpPort(6000, { name: 'udp' })]

/** With slices made by hand, which carry no label of their Service. */
const headless = (
  name: string,
  number: number,
  endpoints: readonly (Server | EndpointOptions)[],
  options: Partial<ServiceOptions> = {},
): KubernetesObject[] => [
  headlessService(name, number, options),
  ...slices(name, endpoints, { ports: slicePorts(ports()) }),
]

/** The external IPs of a Service are served, from everywhere, and only on its port. */
const servedCells = (number: number): Cell[] => {
  const expect = masqueraded(both)
  const rows = [2, 17]
  const to = externalIp(number)
  return inFamilies([
    { id: 'outside', client: 'outside', to: tcp(to, 6000), expect, rows },
    { id: 'outside-udp', client: 'outside', to: udp(to, 6000), expect, rows },
    { id: 'pod-a', client: 'pod-a', to: tcp(to, 6000), expect, rows },
    { id: 'pod-a-udp', client: 'pod-a', to: udp(to, 6000), expect, rows },
    { id: 'node-a', client: 'node-a', to: tcp(to, 6000), expect, rows },
    { id: 'node-a-udp', client: 'node-a', to: udp(to, 6000), expect, rows },
    { id: 'other-port', client: 'outside', to: tcp(to, 6001), expect: passed, rows },
  ])
}

const headlessCases: readonly Case[] = [
  {
    id: 'specialised-headless',
    title: 'A headless Service of the specialised proxy is served at its external IPs',
    specialised: true,
    steps: [
      {
        after: 'start',
        objects: [
          headlessService('specialised-headless', 160),
          // As the EndpointSlice controller makes them.
          ...slices('specialised-headless', ['a1', 'b1'], {
            ports: slicePorts(ports()),
            labels: { ...named, [headlessLabel]: '' },
          }),
        ],
        cells: servedCells(160),
      },
    ],
  },
  {
    id: 'specialised-slices-by-hand',
    title: "Slices made by hand serve the specialised proxy's Service without its label",
    specialised: true,
    steps: [{ after: 'start', objects: headless('specialised-by-hand', 161, ['a1', 'b1']), cells: servedCells(161) }],
  },
  {
    id: 'specialised-local',
    title: 'The specialised proxy follows externalTrafficPolicy Local',
    specialised: true,
    steps: [
      {
        after: 'start',
        objects: headless('specialised-local', 162, ['a1', 'b1'], { spec: { externalTrafficPolicy: 'Local' } }),
        cells: inFamilies([
          { id: 'outside', client: 'outside', to: tcp(externalIp(162), 6000), expect: keepsSource(['a1']), rows: [33] },
          { id: 'pod-a', client: 'pod-a', to: tcp(externalIp(162), 6000), expect: keepsSource(both), rows: [34] },
          { id: 'node-a', client: 'node-a', to: tcp(externalIp(162), 6000), expect: masqueraded(both), rows: [34] },
        ]),
      },
    ],
  },
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
          { id: 'new', client: 'outside', to: tcp(externalIp(163), 6000), expect, rows: [20, 24] },
          { id: 'flow', client: 'outside', to: udp(externalIp(163), 6000), expect, rows: [53, 54], flow: 'outside' },
        ]),
      }
    }),
  },
]

const clusterIpCase: Case = {
  id: 'specialised-cluster-ip',
  title: 'A Service of the specialised proxy that has cluster IPs is served there, beside the main proxy',
  specialised: true,
  steps: [
    {
      after: 'start',
      objects: served('specialised-cluster-ip', 164, ['a1', 'b1'], { ports: ports(), labels: named }),
      cells: inFamilies([
        { id: 'pod-a', client: 'pod-a', to: tcp(clusterIp(164), 6000), expect: keepsSource(both), rows: [2, 13] },
        { id: 'pod-a-udp', client: 'pod-a', to: udp(clusterIp(164), 6000), expect: keepsSource(both), rows: [2, 13] },
        { id: 'node-a', client: 'node-a', to: tcp(clusterIp(164), 6000), expect: masqueraded(both), rows: [2, 13] },
        { id: 'outside', client: 'outside', to: tcp(clusterIp(164), 6000), expect: masqueraded(both), rows: [2, 60] },
      ]),
    },
  ],
}

const besideCase: Case = {
  id: 'specialised-beside-main',
  title: "The main proxy's Services and open connections are not disturbed by the specialised proxy's",
  specialised: true,
  steps: [false, true, false].map((isThere) => ({
    after: `${isThere ? 'a' : 'no'} specialised Service with the same endpoints`,
    objects: [
      ...served('main-beside', 165, ['a1', 'b1'], { ports: ports(), spec: { externalIPs: externalIps(165) } }),
      ...(isThere ? headless('specialised-beside', 166, ['a1', 'b1']) : []),
    ],
    cells: inFamilies([
      { id: 'cluster-ip', client: 'pod-a', to: tcp(clusterIp(165), 6000), expect: keepsSource(both), rows: [2, 13] },
      {
        id: 'cluster-ip-udp',
        client: 'pod-a',
        to: udp(clusterIp(165), 6000),
        expect: keepsSource(both),
        rows: [2, 13],
      },
      { id: 'external-ip', client: 'outside', to: tcp(externalIp(165), 6000), expect: masqueraded(both), rows: [2] },
      {
        id: 'open-connection',
        client: 'outside',
        to: tcp(externalIp(165), 6000),
        expect: masqueraded(both, { hits: 'one' }),
        rows: [2, 22],
        flow: 'open',
      },
      {
        id: 'specialised',
        client: 'outside',
        to: tcp(externalIp(166), 6000),
        expect: isThere ? masqueraded(both) : passed,
        rows: [2],
      },
    ]),
  })),
}

const handedOverCase: Case = {
  id: 'specialised-handed-over',
  title: 'A Service that gets or loses the name of the specialised proxy is served by the one it now belongs to',
  specialised: true,
  steps: [undefined, named, undefined].map((labels) => ({
    after: labels ? 'it belongs to the specialised proxy' : 'it belongs to the main proxy',
    objects: served('handed-over', 167, ['a1', 'b1'], {
      ports: ports(),
      spec: { externalIPs: externalIps(167) },
      ...(labels && { labels }),
    }),
    cells: inFamilies([
      { id: 'outside', client: 'outside', to: tcp(externalIp(167), 6000), expect: masqueraded(both), rows: [2, 17] },
      {
        id: 'outside-udp',
        client: 'outside',
        to: udp(externalIp(167), 6000),
        expect: masqueraded(both),
        rows: [2, 17],
      },
    ]),
  })),
}

const affinityCase: Case = {
  id: 'specialised-affinity',
  title: 'The specialised proxy keeps a client at its endpoint, also if its connections are masqueraded',
  specialised: true,
  steps: [
    {
      after: 'start',
      objects: headless('specialised-affinity', 169, ['a1', 'a2', 'b1', 'b2'], {
        spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } },
      }),
      cells: inFamilies(
        (['outside', 'pod-a', 'node-a'] as const).map((client) => ({
          id: client,
          client,
          to: tcp(externalIp(169), 6000),
          expect: masqueraded(['a1', 'a2', 'b1', 'b2'], { hits: 'one' }),
          rows: [2, 37],
        })),
      ),
    },
  ],
}

const wholeAddressCase: Case = {
  id: 'specialised-whole-address',
  title: 'A headless Service of the specialised proxy has its external IPs as a whole',
  specialised: true,
  kpngOnly: wholeAddress.kpngOnly,
  steps: [
    {
      after: 'start',
      objects: headless('specialised-whole', 168, ['a1', 'b1'], { annotations: wholeAddress.annotations }),
      cells: inFamilies(
        [8080, 9090].flatMap((port) => {
          const expect = masqueraded(both.map((server) => `${server}:${port}`))
          const rows = [2, 90]
          return [
            { id: `outside-${port}`, client: 'outside', to: tcp(externalIp(168), port), expect, rows },
            { id: `outside-${port}-udp`, client: 'outside', to: udp(externalIp(168), port), expect, rows },
            { id: `pod-a-${port}`, client: 'pod-a', to: tcp(externalIp(168), port), expect, rows },
          ] as const
        }),
      ),
    },
  ],
}

export const specialisedCases: readonly Case[] = [
  ...headlessCases,
  clusterIpCase,
  besideCase,
  handedOverCase,
  affinityCase,
  wholeAddressCase,
]
