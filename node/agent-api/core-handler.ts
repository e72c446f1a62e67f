import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AgentStatus, Explanation, globalv1, SourceStatusAnswer } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import type { FrontendTable } from '@kpng/dataplane'
import { sendJson } from '../server/respond.js'
import { answering } from './handler.js'
import { endpointRows, frontendRows, nodeRow, serviceRows } from './rows.js'

export interface CoreApiOptions {
  readonly version: string
  /** The name of the machine. */
  readonly nodeName: string
  /** `synced`: the state is complete. */
  readonly state: { readonly synced: boolean; readonly revision: number }
  /** Those that are served now, by what they ask for: `local`, `global`. */
  readonly watchers: () => Readonly<Record<string, number>>
  /** How up to date the source is; undefined if it watches nothing. */
  readonly source?: () => SourceStatusAnswer | undefined
  readonly skippedObjects?: () => number
  /** Services and endpoints of the whole cluster, the endpoints by Service. */
  readonly endpointCounts: () => ReadonlyMap<string, number>
  /** Every node that the source knows. */
  readonly nodes: () => Iterable<globalv1.Node>
  /** What a node serves. Empty: a node that nobody knows. */
  readonly viewOf: (nodeName: string) => Promise<{ readonly view: NodeView; readonly frontends: FrontendTable }>
  /** The answer to /v1/explain. */
  readonly explain: (query: URLSearchParams) => Promise<Explanation>
}

/** The agent API of a core: what the whole cluster has and, with `node=NAME`, what it serves one node. Read-only. */
export function coreApiHandler(options: CoreApiOptions): (request: IncomingMessage, response: ServerResponse) => void {
  const startedAt = new Date().toISOString()
  return answering(async ({ pathname, searchParams }, response) => {
    const node = searchParams.get('node') ?? ''
    const namespace = searchParams.get('namespace') ?? undefined
    switch (pathname) {
      case '/v1/status':
        return sendJson(response, 200, statusOf(options, startedAt))
      case '/v1/services': {
        const { view, frontends } = await options.viewOf(node)
        const counts = options.endpointCounts()
        const rows = serviceRows(view, frontends, namespace)
        // Without a node, nobody uses endpoints: those that exist are counted.
        const services =
          node === ''
            ? rows.map((row) => ({ ...row, endpoints: counts.get(`${row.namespace}/${row.name}`) ?? 0 }))
            : rows
        return sendJson(response, 200, { services })
      }
      case '/v1/endpoints':
        return sendJson(response, 200, { endpoints: endpointRows((await options.viewOf(node)).view, namespace) })
      case '/v1/frontends':
        return sendJson(response, 200, { frontends: frontendRows((await options.viewOf(node)).frontends, namespace) })
      case '/v1/nodes':
        return sendJson(response, 200, { nodes: [...options.nodes()].map((each) => nodeRow(each, options.nodeName)) })
      case '/v1/explain':
        return sendJson(response, 200, await options.explain(searchParams))
      default:
        return sendJson(response, 404, { error: `The agent API of a core has no ${pathname}. Ask the kpng of a node.` })
    }
  })
}

function statusOf(options: CoreApiOptions, startedAt: string): AgentStatus {
  const { version, nodeName, state, watchers, source, skippedObjects } = options
  const counts = options.endpointCounts()
  const report = source?.()
  return {
    ...{ version, node: nodeName, role: 'core', startedAt, now: new Date().toISOString() },
    ...(report ? { source: report } : {}),
    ...{ syncs: 0, failedSyncs: 0, fullSyncs: 0, frontends: 0, problems: [] },
    core: { synced: state.synced, revision: state.revision, watchers: { ...watchers() } },
    services: counts.size,
    endpoints: [...counts.values()].reduce((sum, count) => sum + count, 0),
    skippedObjects: skippedObjects?.() ?? 0,
  }
}
