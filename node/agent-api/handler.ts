import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type AgentStatus,
  type Explanation,
  KpngError,
  type Log,
  messageOf,
  type NodeRow,
  nodeHealthOf,
  type ServiceAnswer,
  type ServiceRow,
  type SourceStatusAnswer,
  type Verdict,
} from '@kpng/api'
import type { Backend, NodeView } from '@kpng/client'
import { clientOf, type FrontendTable } from '@kpng/dataplane'
import { type ExplainOptions, explain, parseClient, parseQuestion } from '@kpng/diagnose'
import { reachableAddresses } from '@kpng/linux'
import { sendJson } from '../server/respond.js'
import type { Activity } from './activity.js'
import { connectionCounter, connectionsOf } from './connections.js'
import { flowsOf } from './flows.js'
import { NodeLive } from './node-live.js'
import { endpointRows, frontendRows, nodeRow, type RowSource, serviceRows } from './rows.js'
import type { ServiceFactsOf } from './service-facts.js'

export interface AgentApiOptions {
  readonly nodeName: string
  readonly version: string
  /** The backend's name, such as `nftables`. */
  readonly mode: string
  readonly activity: Activity
  readonly frontends: FrontendTable
  readonly backend?: Backend
  /** How up to date the source is; undefined if it watches nothing. */
  readonly source?: () => SourceStatusAnswer | undefined
  readonly skippedObjects?: () => number
  /** What on this node stops connections to Services. Default: nobody looks. */
  readonly nodeCauses?: ExplainOptions['nodeCauses']
  /** What the core says about a Service. Default: it cannot be asked. */
  readonly serviceAnswer?: (service: string) => Promise<ServiceAnswer | undefined>
  /** What the core knows about the endpoints of a Service, if it is in this process. Default: only what the node uses is known. */
  readonly factsOf?: ServiceFactsOf
  readonly log?: Log
  /** Commands to try, in a playground. */
  readonly hints?: () => NonNullable<AgentStatus['hints']>
}

export interface AgentApi {
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void
  readonly live: NodeLive
  /** Ends the streams. */
  close(): void
}

/** Answers the requests of `kpng status`, `get` and `explain` and of the live page. Read-only. */
export function agentApi(options: AgentApiOptions): AgentApi {
  const { activity, frontends, factsOf, backend, log } = options
  const live = new NodeLive({
    ...{ activity, frontends, factsOf, log },
    status: () => statusOf(options),
    connections: connectionCounter(backend),
    features: () => backend?.features?.(),
  })
  const handler = answering((url, response, request) => answer(options, live, url, response, request))
  return { handler, live, close: () => live.close() }
}

const statusCodes: Readonly<Record<string, number>> = { usage: 400, unavailable: 503 }

/** Read-only requests, and errors as answers. */
export const answering =
  (answer: (url: URL, response: ServerResponse, request: IncomingMessage) => Promise<void>) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    if (request.method !== 'GET') {
      sendJson(response, 405, { error: 'The agent API is read-only: use GET.' })
      return
    }
    const { url = '/' } = request
    if (!URL.canParse(url, 'http://agent')) {
      sendJson(response, 400, { error: `The agent API has no ${url}.` })
      return
    }
    const answered = (async () => answer(new URL(url, 'http://agent'), response, request))()
    answered.catch((error) => {
      if (response.headersSent) response.destroy()
      else
        sendJson(response, statusCodes[error instanceof KpngError ? error.code : ''] ?? 500, {
          error: messageOf(error),
        })
    })
  }

async function answer(
  options: AgentApiOptions,
  live: NodeLive,
  url: URL,
  response: ServerResponse,
  request: IncomingMessage,
): Promise<void> {
  const { pathname, searchParams } = url
  const { activity, frontends } = options
  const namespace = searchParams.get('namespace') ?? undefined
  const view = activity.view ?? nothing
  switch (pathname) {
    case '/v1/status':
      return sendJson(response, 200, {
        ...statusOf(options),
        verdicts: verdictsOf(serviceRows(view, rowSource(options))),
      })
    case '/v1/services':
      return sendJson(response, 200, { services: serviceRows(view, rowSource(options), namespace) })
    case '/v1/endpoints':
      return sendJson(response, 200, { endpoints: endpointRows(view, namespace) })
    case '/v1/frontends':
      return sendJson(response, 200, { frontends: frontendRows(frontends, namespace) })
    case '/v1/nodes':
      return sendJson(response, 200, { nodes: [ownNode(options)] })
    case '/v1/changes':
      return sendJson(response, 200, { changes: activity.syncs })
    case '/v1/explain': {
      const explained = await explanation(options, searchParams)
      live.onExplained(explained)
      return sendJson(response, 200, explained)
    }
    case '/v1/connections':
      return sendJson(response, 200, await connectionsOf(options.backend, options.mode))
    case '/v1/stream':
      return await live.stream.open(request, response)
    default:
      return sendJson(response, 404, { error: `The agent API has no ${pathname}.` })
  }
}

function verdictsOf(rows: readonly ServiceRow[]): AgentStatus['verdicts'] {
  const counts: Partial<Record<Verdict, number>> = {}
  for (const { verdict } of rows) counts[verdict] = (counts[verdict] ?? 0) + 1
  return counts
}

const rowSource = ({ frontends, factsOf, backend }: AgentApiOptions): RowSource => ({
  table: frontends,
  factsOf,
  features: backend?.features?.(),
})

const nothing: NodeView = { nodeName: '', node: undefined, services: new Map(), serviceCidrs: new Map() }

/** A node without a Node object has the addresses of its interfaces. */
function ownNode(options: AgentApiOptions): NodeRow {
  const { activity, frontends, nodeName } = options
  const node = activity.view?.node
  const health = nodeHealthOf(statusOf(options))
  if (node) return { ...nodeRow(node, nodeName), ...health }
  return { name: nodeName, addresses: frontends.node.addresses, zone: '', podCidrs: [], isLocal: true, ...health }
}

function explanation(options: AgentApiOptions, query: URLSearchParams): Promise<Explanation> {
  const { frontends: table, nodeName, backend, serviceAnswer = async () => undefined } = options
  const what = query.get('what')
  if (!what) throw new KpngError('usage', 'Say what to explain: /v1/explain?what=web&namespace=default')
  const node = query.get('node')
  if (node && node !== nodeName) {
    throw new KpngError(
      'usage',
      `This kpng serves the node ${nodeName}, not ${node}. Ask the kpng there, a core, or the API server with --kubeconfig.`,
    )
  }
  const from = query.get('from')
  const features = backend?.features?.()
  return explain(parseQuestion(what, query.get('namespace') ?? 'default'), {
    ...{ table, nodeName, serviceAnswer, features },
    ownAddresses: [...table.node.addresses, ...reachableAddresses()],
    ...(options.nodeCauses ? { nodeCauses: options.nodeCauses } : {}),
    client: from ? parseClient(from, (ip) => clientOf(table.node, ip)) : undefined,
    // A process that carries the traffic itself has no flows in conntrack that lead to endpoints.
    ...(features?.keepsSourceAddress ? { flows: flowsOf } : {}),
    ...(backend?.held ? { held: (frontend) => backend.held?.(frontend) ?? Promise.resolve(undefined) } : {}),
  })
}

/** How many problems a status lists. */
const listedProblems = 20

function statusOf(options: AgentApiOptions): AgentStatus {
  const { nodeName, version, mode, activity, frontends, backend, source, skippedObjects } = options
  const services = activity.view?.services ?? new Map()
  const features = backend?.features?.()
  const report = source?.()
  const lastSync = activity.syncs.at(-1)
  const problems = [...frontends.problems]
    .slice(0, listedProblems)
    .flatMap(([service, found]) => found.map(({ kind, sentence }) => ({ service, kind, problem: sentence })))
  const { drift } = activity
  return {
    ...{ version, node: nodeName, role: 'node', backend: features?.name ?? mode },
    ...(features ? { features: { ...features } } : {}),
    startedAt: new Date(activity.startedAtMs).toISOString(),
    now: new Date().toISOString(),
    ...(report ? { source: report } : {}),
    ...(lastSync ? { lastSync } : {}),
    ...activity.counts,
    services: services.size,
    frontends: frontends.size,
    skippedObjects: skippedObjects?.() ?? 0,
    problems: problems.slice(0, listedProblems),
    ...(drift ? { drift } : {}),
    ...(options.hints ? { hints: options.hints() } : {}),
  }
}
