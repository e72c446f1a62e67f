import type { HttpHandler } from '../server/listen.js'
import { sendJson, sendText } from '../server/respond.js'
import type { ProxyHealth } from './proxy-health.js'

export interface HealthHandlerOptions {
  readonly health: ProxyHealth
  /** Told about each answer, for `kubeproxy_proxy_{healthz,livez}_total`. */
  readonly onAnswer?: (page: 'healthz' | 'livez', code: 200 | 503) => void
}

/** Answers /healthz and /livez as kube-proxy does on port 10256. */
export function healthHandler({ health, onAnswer }: HealthHandlerOptions): HttpHandler {
  return (request, response) => {
    const page = request.url?.split('?')[0]?.slice(1)
    if (page !== 'healthz' && page !== 'livez') return sendText(response, 404, '404 page not found\n')
    const { ok, status } = health.report(page)
    const code = ok ? 200 : 503
    onAnswer?.(page, code)
    sendJson(response, code, status)
  }
}
