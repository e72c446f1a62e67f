import { families } from '@kpng/api'
import { clusterIp, externalIp, loadBalancerIp, podPorts, type Server } from '../addresses.js'
import type { Case, Cell, KubernetesObject } from './case.js'
import { type CellSpec, dropped, inFamilies, keepsSource, masqueraded, passed, refused, tcp, udp } from './cells.js'
import { type EndpointOptions, served, tcpPort } from './objects.js'

// A Service that has whole addresses gets every port and protocol of them, and the endpoint gets the traffic on the port that the
// client used. Its only listed port is one that the cells do not ask for.

export const wholeAddress = {
  annotations: { 'kpng.sigs.k8s.io/map-ip': 'true' },
  kpngOnly: "the annotation kpng.sigs.k8s.io/map-ip is kpng's own",
} as const
const { kpngOnly } = wholeAddress

const rows = [90]

const whole = (
  name: string,
  number: number,
  endpoints: readonly (Server | EndpointOptions)[],
  { policy = 'Cluster', isWhole = true }: { policy?: 'Cluster' | 'Local'; isWhole?: boolean } = {},
): KubernetesObject[] =>
  served(name, number, endpoints, {
    ports: [tcpPort(80)],
    ...(isWhole && { annotations: { ...wholeAddress.annotations } }),
    spec: {
      type: 'LoadBalancer',
      externalIPs: families.map((family) => externalIp(number)[family]),
      externalTrafficPolicy: policy,
    },
    ingress: families.map((family) => ({ ip: loadBalancerIp(number)[family] })),
  })

/** One cell for each port that the pods serve, over TCP and UDP. */
const onEveryPort = (
  id: string,
  client: Cell['client'],
  address: ReturnType<typeof clusterIp>,
  expectAt: (port: number) => Cell['expect'],
): CellSpec[] =>
  podPorts.flatMap((port) => [
    { id: `${id}-${port}`, client, to: tcp(address, port), expect: expectAt(port), rows },
    { id: `${id}-${port}-udp`, client, to: udp(address, port), expect: expectAt(port), rows },
  ])

const at = (port: number, servers: readonly string[]): string[] => servers.map((server) => `${server}:${port}`)
const both = ['a1', 'b1']

const clusterPolicy: Case = {
  id: 'whole-address',
  title: 'A Service has all ports of its addresses; the endpoint is reached on the port that was asked for',
  kpngOnly,
  steps: [
    {
      after: 'start',
      objects: whole('whole-address', 170, ['a1', 'b1']),
      cells: inFamilies([
        ...(['outside', 'pod-a', 'node-a'] as const).flatMap((client) =>
          onEveryPort(`${client}-external-ip`, client, externalIp(170), (port) => masqueraded(at(port, both))),
        ),
        ...onEveryPort('outside-load-balancer', 'outside', loadBalancerIp(170), (port) => masqueraded(at(port, both))),
        ...onEveryPort('pod-a-cluster-ip', 'pod-a', clusterIp(170), (port) => keepsSource(at(port, both))),
        ...onEveryPort('node-a-cluster-ip', 'node-a', clusterIp(170), (port) => masqueraded(at(port, both))),
        {
          id: 'hairpin',
          client: 'a1',
          to: tcp(clusterIp(170), 8081),
          expect: { outcome: 'reached', servers: at(8081, both), source: 'any' },
          rows: [...rows, 21],
        },
      ]),
    },
  ],
}

const localPolicy: readonly Case[] = [
  {
    id: 'whole-address-local',
    title: 'Whole addresses under externalTrafficPolicy Local: local endpoints and the source kept from outside',
    kpngOnly,
    steps: [
      {
        after: 'start',
        objects: whole('whole-local', 171, ['a1', 'b1'], { policy: 'Local' }),
        cells: inFamilies([
          ...onEveryPort('outside-external-ip', 'outside', externalIp(171), (port) => keepsSource(at(port, ['a1']))),
          ...onEveryPort('pod-a-external-ip', 'pod-a', externalIp(171), (port) => keepsSource(at(port, both))),
          ...onEveryPort('node-a-external-ip', 'node-a', externalIp(171), (port) => masqueraded(at(port, both))),
        ]),
      },
    ],
  },
  {
    id: 'whole-address-local-none-here',
    title: 'Whole addresses under externalTrafficPolicy Local, no endpoint here: dropped from outside, served inside',
    kpngOnly,
    steps: [
      {
        after: 'start',
        objects: whole('whole-none-here', 172, ['b1'], { policy: 'Local' }),
        cells: inFamilies([
          { id: 'outside', client: 'outside', to: tcp(externalIp(172), 8080), expect: dropped, rows },
          { id: 'outside-udp', client: 'outside', to: udp(externalIp(172), 8081), expect: dropped, rows },
          { id: 'pod-a', client: 'pod-a', to: tcp(externalIp(172), 8081), expect: keepsSource(['b1:8081']), rows },
          { id: 'node-a', client: 'node-a', to: udp(externalIp(172), 9090), expect: masqueraded(['b1:9090']), rows },
        ]),
      },
    ],
  },
]

const noEndpoints: Case = {
  id: 'whole-address-no-endpoints',
  title: 'Whole addresses without an endpoint are refused',
  kpngOnly,
  steps: [
    {
      after: 'start',
      objects: whole('whole-none', 173, []),
      cells: inFamilies(
        (['outside', 'pod-a', 'node-a'] as const).flatMap((client) => [
          { id: client, client, to: tcp(externalIp(173), 8081), expect: refused, rows },
          { id: `${client}-udp`, client, to: udp(externalIp(173), 9090), expect: refused, rows },
          { id: `${client}-cluster-ip`, client, to: tcp(clusterIp(173), 8081), expect: refused, rows },
        ]),
      ),
    },
  ],
}

const changes: readonly Case[] = [
  {
    id: 'whole-address-given',
    title: 'Whole addresses are served from the annotation on and no longer than it, also to a UDP client in mid-flow',
    kpngOnly,
    steps: [false, true, false].map((isWhole) => {
      const expectAt = (port: number) => (isWhole ? masqueraded([`a1:${port}`]) : passed)
      return {
        after: isWhole ? 'the annotation is there' : 'there is no annotation',
        objects: whole('whole-given', 174, ['a1'], { isWhole }),
        cells: inFamilies([
          { id: 'outside', client: 'outside', to: tcp(externalIp(174), 8081), expect: expectAt(8081), rows },
          { id: 'outside-udp', client: 'outside', to: udp(externalIp(174), 8081), expect: expectAt(8081), rows },
          {
            id: 'flow',
            client: 'outside',
            to: udp(externalIp(174), 9090),
            expect: expectAt(9090),
            rows: [53, ...rows],
            flow: 'outside',
          },
        ]),
      }
    }),
  },
  {
    id: 'whole-address-endpoints-change',
    title: 'Whole addresses follow their endpoints, also for a UDP client in mid-flow',
    kpngOnly,
    steps: ([['a1'], ['b1'], [], ['a2']] as const).map((servers) => ({
      after: `endpoints: ${servers.join(', ') || 'none'}`,
      objects: whole('whole-changes', 175, servers),
      cells: inFamilies(
        (['outside', 'pod-a'] as const).flatMap((client) => {
          const expectAt = (port: number) => (servers.length > 0 ? masqueraded(at(port, servers)) : refused)
          return [
            { id: client, client, to: tcp(externalIp(175), 8081), expect: expectAt(8081), rows: [24, ...rows] },
            {
              id: `${client}-flow`,
              client,
              to: udp(externalIp(175), 9090),
              expect: expectAt(9090),
              rows: [53, 54, ...rows],
              flow: client,
            },
          ]
        }),
      ),
    })),
  },
]

export const wholeAddressCases: readonly Case[] = [clusterPolicy, ...localPolicy, noEndpoints, ...changes]
