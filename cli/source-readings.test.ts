import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Playground, startPlayground } from '@kpng/playground'
import { afterEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'
import { freePort, pagesAt, patience } from './testing/pages.js'

// What the metrics page of a proxy says of its source, as the command runs it.

const commands = new Commands()
let playground: Playground | undefined
afterEach(async () => {
  await commands.cleanUp()
  await playground?.close()
  playground = undefined
})

/** The userspace proxy behind a source, and its metrics page once it has synced. */
async function proxy(...source: string[]) {
  const [healthz, metrics] = await Promise.all([freePort(), freePort()])
  const running = commands.start(
    'kpng',
    ...source,
    'to-userspacelin',
    '--capture=none',
    `--healthz-bind-address=127.0.0.1:${healthz}`,
    `--metrics-bind-address=127.0.0.1:${metrics}`,
    '--oom-score-adj=0',
    '-v2',
  )
  await running.says('Synced')
  const page = pagesAt(metrics)
  return async () => (await page('/metrics')).text
}

/** The API server takes any text as an annotation. */
const sliceOfDoubtfulAge = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: 'web-1',
    labels: { 'kubernetes.io/service-name': 'web' },
    annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': 'yesterday' },
  },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8080 }],
  endpoints: [{ addresses: ['10.1.0.1'] }],
}

const state = `
services:
- service:
    namespace: default
    name: web
    type: ClusterIP
    ips: { clusterips: { v4: [ 127.97.1.2, nonsense ] } }
    ports: [ { name: http, protocol: 1, port: 18082, targetport: 8080 } ]
  endpoints: []
`

function stateFile(): string {
  const path = join(commands.folder(), 'state.yaml')
  writeFileSync(path, state)
  return path
}

test('the API server: what came from it, what it was asked, what could not be used', async () => {
  playground = await startPlayground({ runPods: false, nodeNames: ['node-a'] })
  const { objects, kubeconfigPath } = playground
  const metrics = await proxy('kube', '--kubeconfig', kubeconfigPath, '--node-name', 'node-a', 'to-local')
  const first = await metrics()
  expect(first).toMatch(/^kpng_k8s_api_events_total [1-9]/m)
  expect(first).toMatch(/^kpng_skipped_objects_total 0$/m)
  const revision = Number(/^kpng_store_revision (\d+)$/m.exec(first)?.[1])
  expect(revision).toBeGreaterThan(0)
  // Sent before the page was there, and counted all the same: a watch of each kind.
  expect(first).toMatch(/^rest_client_requests_total\{code="200",method="GET",host="127\.0\.0\.1:\d+"\} [3-9]$/m)
  // The Event of its start.
  await expect.poll(metrics, patience).toMatch(/^rest_client_requests_total\{code="201",method="POST",.*\} 1$/m)
  expect(await metrics()).toMatch(/^rest_client_request_duration_seconds_count\{verb="POST",.*\} 1$/m)

  objects.apply(sliceOfDoubtfulAge)
  await expect.poll(metrics, patience).toMatch(/^kpng_skipped_objects_total 1$/m)
  await expect.poll(metrics, patience).toMatch(new RegExp(`^kpng_store_revision ${revision + 1}$`, 'm'))
})

test('a file: its revisions and skips, and nothing of an API server', async () => {
  const metrics = await proxy('file', '-i', stateFile(), 'to-local')
  const text = await metrics()
  expect(text).toMatch(/^kpng_skipped_objects_total 1$/m)
  expect(text).toMatch(/^kpng_store_revision [1-9]/m)
  expect(text).toMatch(/^kpng_node_local_events_total 1$/m)
  expect(text).not.toMatch(/kpng_k8s_api_events_total|rest_client_/)
})

test('a source in another process: nothing but what reached this node', async () => {
  const core = commands.start('kpng', 'file', '-i', stateFile(), 'to-api', '--listen', 'tcp://127.0.0.1:0')
  await core.says('Serving the kpng API')
  const api = /listen="tcp:\/\/([^"]+)"/.exec(core.stderr)?.[1] as string
  const text = await (await proxy('local', '--api', api))()
  expect(text).toMatch(/^kpng_node_local_events_total 1$/m)
  expect(text).not.toMatch(/kpng_k8s_api_events_total|kpng_skipped_objects_total|kpng_store_revision|rest_client_/)
})
