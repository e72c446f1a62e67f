import type { HttpHandler } from './server/index.js'
import { sendJson, sendText } from './server/respond.js'

const pages: readonly string[] = ['/healthz', '/livez', '/readyz']

/**
 * Answers /healthz and /readyz: 503 until the state is complete, as `grpc.health.v1` says NOT_SERVING. Later it is served whatever becomes
 * of where it came from. /livez is 200 whenever it answers: an API server that is away is nothing a restart would mend.
 */
export function coreHealthHandler(state: { readonly synced: boolean; readonly revision: number }): HttpHandler {
  return (request, response) => {
    const page = request.url?.split('?')[0] ?? ''
    if (!pages.includes(page)) return sendText(response, 404, '404 page not found\n')
    const { synced, revision } = state
    sendJson(response, synced || page === '/livez' ? 200 : 503, {
      synced,
      revision,
      currentTime: new Date().toISOString(),
    })
  }
}
