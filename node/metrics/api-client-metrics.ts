import { Counter, Histogram, type Registry } from 'prom-client'

/** One request to the API server, as it went. */
export interface ApiRequest {
  readonly method: string
  /** The server's host and port. */
  readonly host: string
  /** Undefined: there was no answer. */
  readonly status: number | undefined
  readonly durationMs: number
}

/**
 * client-go's metrics of what it asks the API server, with its names, labels, buckets and help texts: kube-proxy has them, and the
 * usual dashboards show them. Returns what counts a request.
 */
export function apiClientMetrics(registry: Registry): (request: ApiRequest) => void {
  const requests = new Counter({
    name: 'rest_client_requests_total',
    help: 'Number of HTTP requests, partitioned by status code, method, and host.',
    labelNames: ['code', 'method', 'host'],
    registers: [registry],
  })
  const durations = new Histogram({
    name: 'rest_client_request_duration_seconds',
    help: 'Request latency in seconds. Broken down by verb, and host.',
    labelNames: ['verb', 'host'],
    buckets: [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60],
    registers: [registry],
  })
  return ({ method, host, status, durationMs }) => {
    requests.inc({ code: status ?? '<error>', method, host })
    durations.observe({ verb: method, host }, durationMs / 1000)
  }
}
