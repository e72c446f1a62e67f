import type { SourceReport } from './health/index.js'
import type { HttpHandler } from './server/index.js'
import { sendJson, sendText } from './server/respond.js'

const pages: readonly string[] = ['/healthz', '/livez', '/readyz']

/**
 * Answers /healthz and /readyz: 503 until the state is complete, as `grpc.health.v1` says NOT_SERVING. From then on the core is ready, even
 * when its source is away: it serves what it has, and behind a Service no other replica would know more. The answer says what is stale.
 * /livez is always 200, because a restart does not bring the API server back.
 */
export function coreHealthHandler(
  state: { readonly synced: boolean; readonly revision: number },
  sourceOf: () => SourceReport | undefined = () => undefined,
): HttpHandler {
  return (request, response) => {
    const page = request.url?.split('?')[0] ?? ''
    if (!pages.includes(page)) return sendText(response, 404, '404 page not found\n')
    const { synced, revision } = state
    const source = sourceOf()
    sendJson(response, synced || page === '/livez' ? 200 : 503, {
      synced,
      revision,
      currentTime: new Date().toISOString(),
      ...(source ? { source } : {}),
    })
  }
}
