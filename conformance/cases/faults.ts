import { clusterIp, nodeA, nodePort, type Server } from '../addresses.js'
import type { Action, Case } from './case.js'
import { type CellSpec, inFamilies, keepsSource, masqueraded, tcp } from './cells.js'
import { exposed } from './objects.js'

// What clients see while endpoints are replaced, and while the proxy or its API server is away: nothing.

/** Clients that ask from one step to the next. Each request may reach any of these servers; none may fail. */
const requests = (number: number, servers: readonly Server[], rows: readonly number[]): CellSpec[] => [
  ['requests', 'pod-a', tcp(clusterIp(number), 80), keepsSource(servers, { hits: 'some' }), rows, { throughout: true }],
  [
    'requests-from-outside',
    'outside',
    tcp(nodeA, nodePort(number)),
    masqueraded(servers, { hits: 'some' }),
    rows,
    { throughout: true },
  ],
]

const newAndOpen = (number: number, server: Server, first: Server, rows: readonly number[]): CellSpec[] => [
  ['new', 'pod-a', tcp(clusterIp(number), 80), keepsSource([server]), rows],
  ['new-from-outside', 'outside', tcp(nodeA, nodePort(number)), masqueraded([server]), rows],
  ['open', 'pod-a', tcp(clusterIp(number), 80), keepsSource([first]), rows, { flow: 'open' }],
  ['open-from-outside', 'outside', tcp(nodeA, nodePort(number)), masqueraded([first]), rows, { flow: 'outside' }],
]

const blueGreen: Case = {
  id: 'blue-green',
  title: 'All endpoints are replaced by others, and back: no request fails meanwhile',
  steps: ([['a1'], ['b1'], ['a2', 'b2'], ['a1']] as const).map((servers, step, all) => ({
    after: `the endpoints are ${servers.join(', ')}`,
    objects: exposed('blue-green', 224, servers),
    cells: inFamilies(requests(224, [...new Set([...(all[step - 1] ?? []), ...servers])], [22, 24])),
  })),
}

const kill: Action = { kind: 'end-proxy', signal: 'SIGKILL' }
const stop: Action = { kind: 'end-proxy', signal: 'SIGTERM' }

interface Moment {
  readonly after: string
  readonly server: Server
  readonly before?: Server
  readonly actions?: readonly Action[]
}

const restartMoments: readonly Moment[] = [
  { after: 'start', server: 'a1' },
  { after: 'the proxy was killed', server: 'a1', actions: [kill] },
  { after: 'it was started, the endpoint is b1, and it was stopped', server: 'b1', before: 'a1', actions: [stop] },
  { after: 'it was started, and the endpoint is a2', server: 'a2', before: 'b1' },
]

const stepOf = (
  name: string,
  number: number,
  row: number,
  { after, server, before = server, actions = [] }: Moment,
) => ({
  after,
  objects: exposed(name, number, [server]),
  actions,
  cells: inFamilies([
    ...newAndOpen(number, server, 'a1', [row]),
    ...requests(number, [...new Set([before, server])], [row]),
  ]),
})

const restart: Case = {
  id: 'proxy-restarted',
  title: 'The proxy is killed, stopped and started: Services are served meanwhile, and no connection fails',
  alone: true,
  steps: restartMoments.map((moment) => stepOf('proxy-restarted', 225, 81, moment)),
}

const awayMoments: readonly Moment[] = [
  { after: 'start', server: 'a1' },
  { after: 'the API server is away', server: 'a1', actions: [{ kind: 'api-server-away' }] },
  { after: 'it is back, and the endpoint is b1', server: 'b1', before: 'a1' },
]

const apiServerAway: Case = {
  id: 'api-server-restarted',
  title: 'The API server goes away and comes back: Services are served meanwhile, and what changed is followed',
  alone: true,
  steps: awayMoments.map((moment) => stepOf('api-server-restarted', 226, 88, moment)),
}

export const faultCases: readonly Case[] = [blueGreen, restart, apiServerAway]
