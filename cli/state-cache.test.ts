import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import { join } from 'node:path'
import { type Playground, startPlayground } from '@kpng/playground'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { enterNewNamespace, whySkipped } from '../linux/testing/index.js'
import { Commands, type Running } from './testing/commands.js'
import { freePort, pagesAt } from './testing/pages.js'

// A node that boots while the API server, or its core, is away: real processes that are killed, real rules in a network namespace of
// this test, an API server that goes and comes back.

const why = whySkipped('cli/state-cache.test.ts', 'nft', 'ip')
const patience = { timeout: 90_000 }
const commands = new Commands()
const nft = (...args: string[]) => execFileSync('nft', args, { encoding: 'utf8' })
/** What a reboot does to rules. */
const reboot = () => nft('flush', 'ruleset')

let api: Playground | undefined
let dataDir: string
let port: number

async function startApi(): Promise<Playground> {
  const options = { runPods: false, nodeNames: ['node-a'], serviceCidrs: ['10.96.0.0/16'] }
  api = await startPlayground({ ...options, dataDir, port })
  return api
}

async function stopApi(): Promise<void> {
  await api?.close()
  api = undefined
}

function apply(name: string, clusterIP: string, endpoint: string): void {
  api?.objects.apply({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { clusterIP, ports: [{ name: 'http', port: 80 }] },
  })
  api?.objects.apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: [endpoint], nodeName: 'node-a' }],
  })
}

/** What answers at an address, by a connection of its own; the error if nothing does. */
const answerOf = (address: string) =>
  new Promise<string>((resolve) => {
    const request = get({ host: address, port: 80, agent: false, timeout: 2000 }, (response) => {
      response.setEncoding('utf8').once('data', resolve)
    })
    request.once('timeout', () => request.destroy(new Error('timeout')))
    request.once('error', () => resolve('nothing'))
  })

interface Node {
  readonly running: Running
  readonly file: string
  readonly health: (path: string) => Promise<{ status: number; text: string }>
  readonly metrics: () => Promise<string>
}

/** Starts the agent of a node, with a state cache. */
async function startNode(file: string, source = ['kube', '--kubeconfig', join(dataDir, 'kubeconfig'), 'to-local']) {
  const [healthz, metricsPort] = await Promise.all([freePort(), freePort()])
  const running = commands.start(
    'kpng',
    ...source,
    ...['to-nft', '--node-name=node-a', `--state-cache=${file}`, '--oom-score-adj=0'],
    ...['--conntrack-max-per-core=0', '--conntrack-min=0'],
    `--healthz-bind-address=127.0.0.1:${healthz}`,
    `--metrics-bind-address=127.0.0.1:${metricsPort}`,
  )
  const page = pagesAt(metricsPort)
  const node: Node = {
    running,
    file,
    health: pagesAt(healthz),
    metrics: async () => (await page('/metrics')).text,
  }
  return node
}

/** A node that has served the first state and saved it, and is gone. */
async function goneNode(signal: 'SIGKILL' | 'SIGTERM', source?: string[]): Promise<string> {
  const file = join(commands.folder(), 'kpng', 'state-cache')
  const { running } = await startNode(file, source)
  await expect.poll(() => answerOf('10.96.1.1'), patience).toBe('10.1.0.1')
  // One that is asked to stop saves what is new; one that is killed has done so before.
  if (signal === 'SIGKILL') await expect.poll(() => existsSync(file), patience).toBe(true)
  await running.stop(signal)
  return file
}

describe.skipIf(why !== undefined)('a node', () => {
  const servers = ['10.1.0.1', '10.1.0.2'].map((address) => ({
    address,
    server: createServer((_, response) => void response.end(address)),
  }))

  beforeAll(async () => {
    await enterNewNamespace()
    for (const { address, server } of servers) {
      execFileSync('ip', ['address', 'add', `${address}/32`, 'dev', 'lo'])
      await new Promise<void>((resolve) => server.listen(8080, address, resolve))
    }
    // A cluster IP needs a route to leave the socket.
    execFileSync('ip', ['route', 'add', 'default', 'dev', 'lo'])
  })
  afterAll(() => {
    for (const { server } of servers) server.close()
  })
  beforeEach(async () => {
    dataDir = commands.folder()
    port = await freePort()
    await startApi()
    apply('web', '10.96.1.1', '10.1.0.1')
    apply('gone', '10.96.1.2', '10.1.0.1')
  })
  afterEach(async () => {
    await commands.cleanUp()
    await stopApi()
    reboot()
  })

  test('that boots without an API server serves the last state after 5 s, and the exact one when the API server is back', async () => {
    const file = await goneNode('SIGKILL')
    await stopApi()
    reboot()
    expect(await answerOf('10.96.1.1')).toBe('nothing')
    const node = await startNode(file)
    await node.running.says('serving the Services of the state cache', 90_000)
    await expect.poll(() => answerOf('10.96.1.1'), patience).toBe('10.1.0.1')
    expect(await answerOf('10.96.1.2')).toBe('10.1.0.1')
    await expect.poll(async () => (await node.health('/readyz')).status, patience).toBe(200)
    for (const path of ['/healthz', '/livez', '/readyz']) {
      const { status, text } = await node.health(path)
      expect([status, JSON.parse(text).source]).toMatchObject([
        200,
        { stale: true, reason: expect.stringContaining('the state is that of the state cache, saved at 20') },
      ])
    }
    expect(await node.metrics()).toMatch(/^kpng_state_cache_in_use 1$/m)
    expect(await node.metrics()).toMatch(/^kpng_source_connected\{resource="services"\} 0$/m)

    await startApi()
    apply('web', '10.96.1.1', '10.1.0.2')
    apply('new', '10.96.1.3', '10.1.0.1')
    api?.objects.delete('Service', 'gone')
    await node.running.says('the state cache is no longer in use', 90_000)
    await expect.poll(() => answerOf('10.96.1.1'), patience).toBe('10.1.0.2')
    await expect.poll(() => answerOf('10.96.1.3'), patience).toBe('10.1.0.1')
    await expect.poll(() => nft('list', 'ruleset'), patience).not.toContain('10.96.1.2')
    expect(await node.metrics()).toMatch(/^kpng_state_cache_in_use 0$/m)
    expect(JSON.parse((await node.health('/readyz')).text).source).toMatchObject({ stale: false })
  })

  test('whose rules are still in the kernel does not need the last state', async () => {
    const file = await goneNode('SIGTERM')
    await stopApi()
    const before = nft('list', 'ruleset')
    const node = await startNode(file)
    await node.running.says('The rules of the last run stay', 90_000)
    expect(await answerOf('10.96.1.1')).toBe('10.1.0.1')
    expect(nft('list', 'ruleset')).toBe(before)
    expect(await node.metrics()).toMatch(/^kpng_state_cache_in_use 0$/m)
    expect((await node.health('/readyz')).status).toBe(503)
    expect((await node.health('/healthz')).status).toBe(200)
    expect(node.running.stderr).not.toContain('serving the Services of the state cache')
  })

  test('that boots without its core serves the last state, until the core is back', async () => {
    const socket = `unix://${join(commands.folder(), 'kpng.sock')}`
    const source = ['local', '--api', socket]
    const startCore = () =>
      commands.start('kpng', 'kube', '--kubeconfig', join(dataDir, 'kubeconfig'), 'to-api', '--listen', socket)
    const core = startCore()
    const file = await goneNode('SIGTERM', source)
    await core.stop('SIGKILL')
    reboot()
    const node = await startNode(file, source)
    await expect.poll(() => answerOf('10.96.1.1'), patience).toBe('10.1.0.1')
    expect(JSON.parse((await node.health('/healthz')).text).source).toMatchObject({
      stale: true,
      watches: { core: { connected: false } },
    })
    apply('web', '10.96.1.1', '10.1.0.2')
    startCore()
    await node.running.says('the state cache is no longer in use', 90_000)
    await expect.poll(() => answerOf('10.96.1.1'), patience).toBe('10.1.0.2')
    expect(await node.metrics()).toMatch(/^kpng_source_connected\{resource="core"\} 1$/m)
  })

  test('ignores a state that is damaged or of another cluster, and serves nothing until the API server is back', async () => {
    const file = await goneNode('SIGTERM')
    const whole = readFileSync(file)
    await stopApi()
    reboot()
    writeFileSync(file, whole.subarray(0, -10))
    const damaged = await startNode(file)
    await damaged.running.says('The state cache is ignored', 90_000)
    expect(damaged.running.stderr).toMatch(new RegExp(`ignored.*file="${file}".*it is damaged`))
    expect(await answerOf('10.96.1.1')).toBe('nothing')
    await startApi()
    await expect.poll(() => answerOf('10.96.1.1'), patience).toBe('10.1.0.1')
    await damaged.running.stop('SIGKILL')
    await stopApi()
    reboot()

    // The same address, and another authority: another cluster.
    writeFileSync(file, whole)
    dataDir = commands.folder()
    await startApi()
    await stopApi()
    const foreign = await startNode(file)
    await foreign.running.says('The state cache is ignored', 90_000)
    expect(foreign.running.stderr).toMatch(
      /it is of another source \(https:\/\/127\.0\.0\.1:\d+ \(CA \w{16}\), not https:/,
    )
    expect(await answerOf('10.96.1.1')).toBe('nothing')
  })

  test('that cannot write its state says so in one line, and serves', async () => {
    const node = await startNode('/sys/kpng/state-cache')
    await expect.poll(() => answerOf('10.96.1.1'), patience).toBe('10.1.0.1')
    await node.running.says('The state cache cannot be written', 90_000)
    apply('new', '10.96.1.3', '10.1.0.1')
    await expect.poll(() => answerOf('10.96.1.3'), patience).toBe('10.1.0.1')
    const { stderr } = await node.running.stop()
    expect(stderr.match(/cannot be written/g)).toHaveLength(1)
    expect(stderr).toContain('file="/sys/kpng/state-cache"')
  })

  test('writes no state if the flag is empty, and its state is complete after an ordinary stop', async () => {
    const file = join(commands.folder(), 'state-cache')
    const node = await startNode(file)
    await expect.poll(() => answerOf('10.96.1.1'), patience).toBe('10.1.0.1')
    apply('new', '10.96.1.3', '10.1.0.1')
    await expect.poll(() => answerOf('10.96.1.3'), patience).toBe('10.1.0.1')
    expect((await node.running.stop()).code).toBe(0)
    // kubernetes, web, gone, new
    expect(JSON.parse(readFileSync(file, 'latin1').split('\n')[0] as string)).toMatchObject({
      node: 'node-a',
      services: 4,
    })
    const without = await startNode('')
    await expect.poll(async () => (await without.health('/readyz')).status, patience).toBe(200)
    expect(await without.metrics()).not.toContain('kpng_state_cache_in_use')
  })
})
