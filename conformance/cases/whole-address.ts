import { clusterIp, externalIp, loadBalancerIp, podPorts } from '../addresses.js'
import type { Case, Cell, KubernetesObject } from './case.js'
import {
  type CellSpec,
  dropped,
  inFamilies,
  keepsSource,
  masqueraded,
  oneStep,
  passed,
  reaches,
  refused,
  tcp,
  udp,
} from './cells.js'
import { both, type EndpointList, exposed, tcpPort } from './objects.js'

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
  endpoints: EndpointList,
  { policy = 'Cluster', isWhole = true }: { policy?: 'Cluster' | 'Local'; isWhole?: boolean } = {},
): KubernetesObject[] =>
  exposed(name, number, endpoints, {
    ports: [tcpPort(80)],
    ...(isWhole && { annotations: wholeAddress.annotations }),
    spec: { externalTrafficPolicy: policy },
  })

/** One cell for each port that the pods serve, over TCP and UDP. */
const onEveryPort = (
  id: string,
  client: Cell['client'],
  address: ReturnType<typeof clusterIp>,
  expectAt: (port: number) => Cell['expect'],
): CellSpec[] =>
  podPorts.flatMap((port) => [
    [`${id}-${port}`, client, tcp(address, port), expectAt(port), rows],
    [`${id}-${port}-udp`, client, udp(address, port), expectAt(port), rows],
  ])

const at = (port: number, servers: readonly string[]): string[] => servers.map((server) => `${server}:${port}`)

const clusterPolicy: Case = oneStep({
  id: 'whole-address',
  title: 'A Service has all ports of its addresses; the endpoint is reached on the port that was asked for',
  kpngOnly,
  objects: whole('whole-address', 170, both),
  cells: [
    ...(['outside', 'pod-a', 'node-a'] as const).flatMap((client) =>
      onEveryPort(`${client}-external-ip`, client, externalIp(170), (port) => masqueraded(at(port, both))),
    ),
    ...onEveryPort('outside-load-balancer', 'outside', loadBalancerIp(170), (port) => masqueraded(at(port, both))),
    ...onEveryPort('pod-a-cluster-ip', 'pod-a', clusterIp(170), (port) => keepsSource(at(port, both))),
    ...onEveryPort('node-a-cluster-ip', 'node-a', clusterIp(170), (port) => masqueraded(at(port, both))),
    ['hairpin', 'a1', tcp(clusterIp(170), 8081), reaches(at(8081, both)), [...rows, 21]],
  ],
})

const localPolicy: readonly Case[] = [
  oneStep({
    id: 'whole-address-local',
    title: 'Whole addresses under externalTrafficPolicy Local: local endpoints and the source kept from outside',
    kpngOnly,
    objects: whole('whole-local', 171, both, { policy: 'Local' }),
    cells: [
      ...onEveryPort('outside-external-ip', 'outside', externalIp(171), (port) => keepsSource(at(port, ['a1']))),
      ...onEveryPort('pod-a-external-ip', 'pod-a', externalIp(171), (port) => keepsSource(at(port, both))),
      ...onEveryPort('node-a-external-ip', 'node-a', externalIp(171), (port) => masqueraded(at(port, both))),
    ],
  }),
  oneStep({
    id: 'whole-address-local-none-here',
    title: 'Whole addresses under externalTrafficPolicy Local, no endpoint here: dropped from outside, served inside',
    kpngOnly,
    objects: whole('whole-none-here', 172, ['b1'], { policy: 'Local' }),
    cells: [
      ['outside', 'outside', tcp(externalIp(172), 8080), dropped, rows],
      ['outside-udp', 'outside', udp(externalIp(172), 8081), dropped, rows],
      ['pod-a', 'pod-a', tcp(externalIp(172), 8081), keepsSource(['b1:8081']), rows],
      ['node-a', 'node-a', udp(externalIp(172), 9090), masqueraded(['b1:9090']), rows],
    ],
  }),
]

const noEndpoints: Case = oneStep({
  id: 'whole-address-no-endpoints',
  title: 'Whole addresses without an endpoint are refused',
  kpngOnly,
  objects: whole('whole-none', 173, []),
  cells: (['outside', 'pod-a', 'node-a'] as const).flatMap((client) => [
    [client, client, tcp(externalIp(173), 8081), refused, rows],
    [`${client}-udp`, client, udp(externalIp(173), 9090), refused, rows],
    [`${client}-cluster-ip`, client, tcp(clusterIp(173), 8081), refused, rows],
  ]),
})

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
          ['outside', 'outside', tcp(externalIp(174), 8081), expectAt(8081), rows],
          ['outside-udp', 'outside', udp(externalIp(174), 8081), expectAt(8081), rows],
          ['flow', 'outside', udp(externalIp(174), 9090), expectAt(9090), [53, ...rows], { flow: 'outside' }],
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
            [client, client, tcp(externalIp(175), 8081), expectAt(8081), [24, ...rows]],
            [`${client}-flow`, client, udp(externalIp(175), 9090), expectAt(9090), [53, 54, ...rows], { flow: client }],
          ]
        }),
      ),
    })),
  },
]

export const wholeAddressCases: readonly Case[] = [clusterPolicy, ...localPolicy, noEndpoints, ...changes]
