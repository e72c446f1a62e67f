import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { endpointAt, serviceWith, syncReport, TestView } from '../testing/views.js'
import { countObservations } from './observation-metrics.js'
import { ProxyMetrics } from './proxy-metrics.js'

const promtool = (args: readonly string[], input?: string) =>
  spawnSync('promtool', args, { encoding: 'utf8', ...(input === undefined ? {} : { input }) })
const missing = promtool(['--version']).error !== undefined

if (missing) console.warn('Skipped: promtool is not installed. It is in the Debian package prometheus.')

/** kube-proxy's own misnomer: a gauge that ends like a counter. */
const allowed = [
  'kubeproxy_sync_proxy_rules_no_local_endpoints_total non-counter metrics should not have "_total" suffix',
]

test.skipIf(missing)('promtool accepts our output, but for what is wrong in kube-proxy too', async () => {
  const view = new TestView()
  const counts = {
    connections: 1,
    active: 1,
    bytesToEndpoint: 1,
    bytesToClient: 1,
    dialFailures: 1,
    failures: 1,
    crowdedOut: 1,
    refused: 1,
  }
  const metrics = new ProxyMetrics({
    mode: 'nftables',
    version: '1.2.3',
    now: () => 1000,
    readings: { apiEvents: () => 1, nodeLocalEvents: () => 1, skippedObjects: () => 1, storeRevision: () => 1 },
  })
  countObservations({ traffic: new Map([['default/web:http', counts]]), listener: {} }, metrics)
  const changes = view.change(
    { 'default/web': serviceWith({ name: 'web', externalTrafficToLocal: true }, [endpointAt('10.0.0.1')]) },
    { full: true, triggers: [{ service: 'default/web', unixMs: 1001 }] },
  )
  metrics.recordQueued(changes)
  metrics.recordSync(syncReport(view, changes))
  metrics.recordSync(syncReport(view, view.change({}), { error: new Error('no') }))
  metrics.recordHealth('healthz', 200)
  metrics.recordHealth('livez', 503)
  metrics.recordConntrack('IPv4', 1, 1)
  metrics.recordCleanupFailure()
  const { stderr, stdout, status } = promtool(['check', 'metrics'], await metrics.registry.metrics())
  expect(`${stdout}${stderr}`.split('\n').filter((line) => line !== '')).toEqual(allowed)
  // 3: there were remarks. 1 would mean that it could not be read.
  expect(status).toBe(3)
})
