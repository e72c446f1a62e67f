import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AgentStatus, ConnectionsAnswer, EndpointRow, Explanation, globalv1, SourceStatusAnswer } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import type { FrontendTable } from '@kpng/dataplane'
import { sendJson } from '../server/respond.js'
import { CoreLive, type CoreLiveOptions } from './core-live.js'
import { fleetRows } from './fleet.js'
import { answering } from './handler.js'
import { endpointRows, frontendRows, serviceRows } from './rows.js'

export interface CoreApiOptions extends Omit<CoreLiveOptions, 'status'> {
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
  /** Endpoints of the whole cluster. */
  readonly endpoints: (namespace?: string) => EndpointRow[]
  /** Every node that the source knows. */
  readonly knownNodes: () => Iterable<globalv1.Node>
  /** The number of Services and of endpoints of the whole cluster. */
  readonly counts: () => { readonly services: number; readonly endpoints: number }
  /** What a node serves. Empty: a node that nobody knows. */
  readonly viewOf: (nodeName: string) => Promise<{ readonly view: NodeView; readonly frontends: FrontendTable }>
  /** The answer to /v1/explain. */
  readonly explain: (query: URLSearchParams) => Promise<Explanation>
}

export interface CoreApi {
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void
  /** Ends the streams. */
  close(): void
}

const noConnections: ConnectionsAnswer = {
  total: 0,
  why: 'A core carries no connections. Ask the kpng of a node.',
}

/** The agent API of a core: what the whole cluster has and, with `node=NAME`, what it serves one node. Read-only. */
export function coreApi(options: CoreApiOptions): CoreApi {
  const startedAt = new Date().toISOString()
  const live = new CoreLive({ ...options, status: (asNode) => statusOf(options, startedAt, asNode) })
  const handler = answering(async ({ pathname, searchParams }, response, request) => {
    const node = searchParams.get('node') ?? ''
    const namespace = searchParams.get('namespace') ?? undefined
    switch (pathname) {
      case '/v1/status':
        return sendJson(response, 200, statusOf(options, startedAt))
      case '/v1/services': {
        const { view, frontends } = await options.viewOf(node)
        const source = { table: frontends, factsOf: options.factsOf(node), ofCluster: node === '' }
        return sendJson(response, 200, { services: serviceRows(view, source, namespace) })
      }
      case '/v1/endpoints':
        return sendJson(response, 200, {
          // Without a node, nobody uses endpoints: those that exist are listed, as they are counted above.
          endpoints:
            node === '' ? options.endpoints(namespace) : endpointRows((await options.viewOf(node)).view, namespace),
        })
      case '/v1/frontends':
        return sendJson(response, 200, { frontends: frontendRows((await options.viewOf(node)).frontends, namespace) })
      case '/v1/nodes':
        return sendJson(response, 200, {
          nodes: fleetRows(options.knownNodes(), options.nodes(), options.nodeName),
        })
      case '/v1/changes':
        return sendJson(response, 200, { changes: options.history.syncs })
      case '/v1/explain':
        return sendJson(response, 200, await options.explain(searchParams))
      case '/v1/connections':
        return sendJson(response, 200, noConnections)
      case '/v1/stream':
        return await live.of(node).stream.open(request, response)
      default:
        return sendJson(response, 404, { error: `The agent API of a core has no ${pathname}. Ask the kpng of a node.` })
    }
  })
  return { handler, close: () => live.close() }
}

function statusOf(
  options: CoreApiOptions,
  startedAt: string,
  asNode?: Parameters<CoreLiveOptions['status']>[0],
): AgentStatus {
  const { version, nodeName, state, watchers, source, skippedObjects } = options
  const report = source?.()
  const { name, ...ofNode } = asNode ?? {}
  return {
    ...{ version, node: nodeName, role: 'core', startedAt, now: new Date().toISOString() },
    ...(report ? { source: report } : {}),
    ...{ syncs: 0, failedSyncs: 0, fullSyncs: 0, frontends: 0, problems: [] },
    core: {
      synced: state.synced,
      revision: state.revision,
      watchers: { ...watchers() },
      ...(name === undefined ? {} : { asNode: name }),
    },
    ...options.counts(),
    skippedObjects: skippedObjects?.() ?? 0,
    ...ofNode,
  }
}
