import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Playground, startPlayground } from '@kpng/playground'
import { afterEach, expect, test } from 'vitest'
import { Commands } from '../testing/commands.js'
import { freePort, pagesAt, patience } from '../testing/pages.js'

// `to-api` with its pages, as users run it.

const commands = new Commands()
let playground: Playground | undefined
afterEach(async () => {
  await commands.cleanUp()
  await playground?.close()
  playground = undefined
})

async function core(source: readonly string[], ...more: string[]) {
  const [healthz, metrics] = await Promise.all([freePort(), freePort()])
  const running = commands.start(
    'kpng',
    ...source,
    'to-api',
    '--listen=tcp://127.0.0.1:0',
    `--healthz-bind-address=127.0.0.1:${healthz}`,
    `--metrics-bind-address=127.0.0.1:${metrics}`,
    ...more,
  )
  await running.says('Serving the kpng API')
  const api = /listen="tcp:\/\/([^"]+)"/.exec(running.stderr)?.[1] as string
  const page = pagesAt(metrics)
  return { running, api, health: pagesAt(healthz), page, metrics: async () => (await page('/metrics')).text }
}

function emptyState(): string {
  const path = join(commands.folder(), 'state.yaml')
  writeFileSync(path, 'services: []\n')
  return path
}

test('a core on the API server says how it is, what came in and what went out', async () => {
  playground = await startPlayground({ runPods: false, nodeNames: ['node-a'] })
  const { api, health, page, metrics, running } = await core(['kube', '--kubeconfig', playground.kubeconfigPath])
  await expect.poll(async () => (await health('/readyz')).status, patience).toBe(200)
  expect(JSON.parse((await health('/livez')).text)).toMatchObject({ synced: true, revision: expect.any(Number) })

  const watcher = commands.start('kpng-json', '--api', api, '--node-name', 'node-a')
  await watcher.says('"kubernetes"')
  const relay = commands.start('kpng', 'api', '--api', api, 'to-file', '-o', join(commands.folder(), 'state.yaml'))
  await expect.poll(metrics, patience).toMatch(/^kpng_watchers\{kind="global"\} 1$/m)
  const text = await metrics()
  expect(text).toMatch(/^kpng_watchers\{kind="local"\} 1$/m)
  expect(text).toMatch(/^kpng_change_sets_sent_total [12]$/m)
  expect(text).toMatch(/^kpng_items_sent_total [1-9]/m)
  expect(text).toMatch(/^kpng_k8s_api_events_total [1-9]/m)
  expect(text).toMatch(/^kpng_store_revision [1-9]/m)
  expect(text).toMatch(/^kpng_skipped_objects_total 0$/m)
  expect(text).toMatch(/^rest_client_requests_total\{code="200",method="GET",.*\} [3-9]$/m)
  await Promise.all([watcher.stop(), relay.stop()])
  await expect.poll(metrics, patience).toMatch(/^kpng_watchers\{kind="local"\} 0$/m)

  expect((await page('/debug/flags/v', { method: 'PUT', body: '4' })).status).toBe(200)
  expect((await page('/debug/profile?seconds=0.1')).status).toBe(403)
  expect(await running.stop()).toMatchObject({ code: 0 })
})

test('a relay without its upstream is not ready, and serves all its pages', async () => {
  const upstream = await freePort()
  const source = ['api', '--api', `127.0.0.1:${upstream}`]
  const { health, page, metrics } = await core(source, '--profiling')
  for (const path of ['/healthz', '/readyz']) expect((await health(path)).status, path).toBe(503)
  expect((await page('/statusz')).text).toContain('Synced: false')
  expect((await page('/debug/profile?seconds=0.1')).status).toBe(200)
  expect(await metrics()).not.toMatch(/kpng_k8s_api_events_total|rest_client_/)
  const file = ['-i', emptyState()]
  commands.start('kpng', 'file', ...file, 'to-api', '--listen', `tcp://127.0.0.1:${upstream}`)
  await expect.poll(async () => (await health('/readyz')).status, patience).toBe(200)
})

test.each([
  [['--profiling'], /--metrics-bind-address/],
  [['--healthz-bind-address=nowhere'], /--healthz-bind-address is "nowhere"/],
  [['--metrics-bind-address=127.0.0.1:99999'], /a port is 1 to 65535/],
])('%j is wrong usage', async (flags, expected) => {
  const { code, stderr } = await commands.run('kpng', 'file', '-i', emptyState(), 'to-api', ...flags)
  expect(stderr).toMatch(expected)
  expect(code).toBe(2)
})
