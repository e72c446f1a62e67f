import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { type ApiRequest, apiClientMetrics } from './api-client-metrics.js'

const host = '10.0.0.1:6443'

test.each<[string, Partial<ApiRequest>, string[]]>([
  [
    'a list',
    { status: 200, durationMs: 40 },
    [
      `rest_client_requests_total{code="200",method="GET",host="${host}"} 1`,
      `rest_client_request_duration_seconds_bucket{le="0.025",verb="GET",host="${host}"} 0`,
      `rest_client_request_duration_seconds_bucket{le="0.1",verb="GET",host="${host}"} 1`,
      `rest_client_request_duration_seconds_sum{verb="GET",host="${host}"} 0.04`,
    ],
  ],
  [
    'a refused Event',
    { method: 'POST', status: 403 },
    [
      `rest_client_requests_total{code="403",method="POST",host="${host}"} 1`,
      `rest_client_request_duration_seconds_count{verb="POST",host="${host}"} 1`,
    ],
  ],
  [
    'no answer',
    { status: undefined, durationMs: 61_000 },
    [
      `rest_client_requests_total{code="<error>",method="GET",host="${host}"} 1`,
      `rest_client_request_duration_seconds_bucket{le="60",verb="GET",host="${host}"} 0`,
      `rest_client_request_duration_seconds_bucket{le="+Inf",verb="GET",host="${host}"} 1`,
    ],
  ],
])('%s', async (_, request, expected) => {
  const registry = new Registry()
  apiClientMetrics(registry)({ method: 'GET', host, status: 200, durationMs: 0, ...request })
  const lines = (await registry.metrics()).split('\n')
  expect(lines).toEqual(expect.arrayContaining(expected))
})
