import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type AgentStatus,
  type Explanation,
  KpngError,
  messageOf,
  type ServiceAnswer,
  type SourceStatusAnswer,
} from '@kpng/api'
import type { Backend, NodeView } from '@kpng/client'
import { clientOf, explain, type FrontendTable, parseClient, parseQuestion } from '@kpng/dataplane'
import { sendJson } from '../server/respond.js'
import type { Activity } from './activity.js'
import { flowsOf } from './flows.js'
import { endpointRows, frontendRows, serviceRows } from './rows.js'
import { streamEvents } from './stream.js'

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
  /** What the core says about a Service. Default: it cannot be asked. */
  readonly serviceAnswer?: (service: string) => Promise<ServiceAnswer | undefined>
}

/** Answers the requests of `kpng status`, `get` and `explain` and of the live page. Read-only. */
export function agentApiHandler(
  options: AgentApiOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  return answering((url, response) => answer(options, url, response))
}

/** Read-only requests, and errors as answers. */
export const answering =
  (answer: (url: URL, response: ServerResponse) => Promise<void>) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    if (request.method !== 'GET') {
      sendJson(response, 405, { error: 'The agent API is read-only: use GET.' })
      return
    }
    const answered = (async () => answer(new URL(request.url ?? '/', 'http://agent'), response))()
    answered.catch((error) => {
      if (response.headersSent) response.destroy()
      else
        sendJson(response, error instanceof KpngError && error.code === 'usage' ? 400 : 500, {
          error: messageOf(error),
        })
    })
  }

async function answer(options: AgentApiOptions, url: URL, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = url
  const { activity, frontends } = options
  const namespace = searchParams.get('namespace') ?? undefined
  const view = activity.view ?? nothing
  switch (pathname) {
    case '/v1/status':
      return sendJson(response, 200, statusOf(options))
    case '/v1/services':
      return sendJson(response, 200, { services: serviceRows(view, frontends, namespace) })
    case '/v1/endpoints':
      return sendJson(response, 200, { endpoints: endpointRows(view, namespace) })
    case '/v1/frontends':
      return sendJson(response, 200, { frontends: frontendRows(frontends, namespace) })
    case '/v1/changes':
      return sendJson(response, 200, { changes: activity.syncs })
    case '/v1/explain':
      return sendJson(response, 200, await explanation(options, searchParams))
    case '/v1/stream':
      return streamEvents(response, { activity, frontends, status: () => statusOf(options) })
    default:
      return sendJson(response, 404, { error: `The agent API has no ${pathname}.` })
  }
}

const nothing: NodeView = { nodeName: '', node: undefined, services: new Map(), serviceCidrs: new Map() }

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
    ...{ table, nodeName, serviceAnswer },
    client: from ? parseClient(from, (ip) => clientOf(table.node, ip)) : undefined,
    // A process that carries the traffic itself has no flows in conntrack that lead to endpoints.
    ...(features?.keepsSourceAddress ? { flows: flowsOf } : {}),
    ...(features?.connectsSockets ? { connectsSockets: true } : {}),
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
  const problems = [...frontends.problems].flatMap(([service, found]) =>
    [...found].map((problem) => ({ service, problem })),
  )
  let endpoints = 0
  for (const item of services.values()) endpoints += item.endpoints.length
  return {
    ...{ version, node: nodeName, role: 'node', backend: features?.name ?? mode },
    ...(features ? { features: { ...features } } : {}),
    startedAt: new Date(activity.startedAtMs).toISOString(),
    now: new Date().toISOString(),
    ...(report ? { source: report } : {}),
    ...(lastSync ? { lastSync } : {}),
    ...activity.counts,
    services: services.size,
    endpoints,
    frontends: [...frontends.all()].length,
    skippedObjects: skippedObjects?.() ?? 0,
    problems: problems.slice(0, listedProblems),
  }
}
