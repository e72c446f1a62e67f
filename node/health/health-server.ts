import type { HttpHandler } from '../server/listen.js'
import { sendJson, sendText } from '../server/respond.js'
import type { HealthPage, ProxyHealth } from './proxy-health.js'

export interface HealthHandlerOptions {
  readonly health: ProxyHealth
  /** Told about each answer, for `kubeproxy_proxy_{healthz,livez}_total`. */
  readonly onAnswer?: (page: 'healthz' | 'livez', code: 200 | 503) => void
}

const pages: readonly string[] = ['healthz', 'livez', 'readyz'] satisfies HealthPage[]

/** Answers /healthz and /livez as kube-proxy does on port 10256, and /readyz. */
export function healthHandler({ health, onAnswer }: HealthHandlerOptions): HttpHandler {
  return (request, response) => {
    const page = request.url?.split('?')[0]?.slice(1) as HealthPage
    if (!pages.includes(page)) return sendText(response, 404, '404 page not found\n')
    const { ok, status } = health.report(page)
    const code = ok ? 200 : 503
    // kube-proxy counts the answers of the pages that it has.
    if (page !== 'readyz') onAnswer?.(page, code)
    sendJson(response, code, status)
  }
}
