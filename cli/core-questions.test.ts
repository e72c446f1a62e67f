import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentStatus, Explanation } from '@kpng/api'
import { afterEach, describe, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// Questions to running processes, as users ask them.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const state = `services:
- service:
    namespace: default
    name: web
    type: ClusterIP
    ips: { clusterips: { v4: [127.97.1.7] }, externalips: {} }
    ports: [{ name: http, protocol: 1, port: 18087, targetport: 8080 }]
    internaltraffictolocal: true
  endpoints:
  - { endpoint: { ips: { v4: [127.10.0.1] } }, conditions: { ready: true }, topology: { node: node-b } }
`

const quietAgent = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
healthzBindAddress: ""
metricsBindAddress: ""
oomScoreAdj: 0
conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }
`

async function core(source: readonly string[], socket = '') {
  const flags = ['to-api', '--listen', '127.0.0.1:0', '--agent-socket', socket]
  const running = commands.start('kpng', ...source, ...flags)
  await running.says('Serving the kpng API')
  return { running, api: /listen="tcp:\/\/([^"]+)"/.exec(running.stderr)?.[1] as string }
}

test('a node behind a relay says why an endpoint is left out, and what is missing once the core is gone', async () => {
  const folder = commands.folder()
  writeFileSync(join(folder, 'state.yaml'), state)
  writeFileSync(join(folder, 'config.yaml'), quietAgent)
  const { api: upstream } = await core(['file', '-i', join(folder, 'state.yaml')])
  const { running: relay, api } = await core(['api', '--api', upstream])
  const socket = join(folder, 'agent.sock')
  const node = commands.start(
    ...['kpng', 'local', '--api', api, '--node-name', 'node-a', 'to-userspacelin', '--capture', 'none', '-v', '2'],
    ...['--agent-socket', socket, '--config', join(folder, 'config.yaml')],
  )
  await node.says('Synced')
  const explain = async () => {
    const { stdout, stderr } = await commands.run('kpng', 'explain', 'web', '--agent-socket', socket, '-o', 'json')
    expect(stderr).toBe('')
    return JSON.parse(stdout) as Explanation
  }
  const other = await commands.run('kpng', 'explain', 'web', '--agent-socket', socket, '--node', 'node-b')
  expect(other.stderr).toContain('This kpng serves the node node-a, not node-b.')
  const { diagnosis, service } = await explain()
  expect(service?.endpoints.map(({ reason }) => reason)).toEqual(['not-local'])
  expect(diagnosis.headline).toContain('internalTrafficPolicy is Local, and no endpoint on this node serves it')

  await relay.stop()
  const { diagnosis: alone, ...without } = await explain()
  expect(alone.unknown[0]).toMatch(
    /^Which endpoints are left out: The core at 127\.0\.0\.1:\d+ did not say which endpoints are left out: /,
  )
  expect(without).not.toHaveProperty('service')
})

test('a core answers on its socket for every node, and a node only for itself', async () => {
  const folder = commands.folder()
  const nodes = 'nodes:\n- name: node-a\n- name: node-b\n'
  writeFileSync(join(folder, 'state.yaml'), nodes + state)
  const socket = join(folder, 'core.sock')
  const { api } = await core(['file', '-i', join(folder, 'state.yaml')], socket)
  const watcher = commands.start('kpng-json', '--api', api, '--node-name', 'node-b')
  await watcher.says('"web"')
  const ask = (...args: string[]) => commands.run('kpng', ...args, '--agent-socket', socket)

  const status = await ask('status')
  expect(status.stdout).toMatch(/^Cluster +1 services, 1 endpoints, revision \d+$/m)
  expect(status.stdout).toMatch(/^Serves +1 nodes, 0 relays$/m)
  expect(status.code).toBe(0)
  const { role, core: about } = JSON.parse((await ask('status', '-o', 'json')).stdout) as AgentStatus
  expect([role, about]).toEqual([
    'core',
    { synced: true, revision: expect.any(Number), watchers: { local: 1, global: 0 } },
  ])
  expect((await ask('get', 'nodes')).stdout).toMatch(
    /^NAME [^\n]*\nnode-a +never synced +- +- +- +- +- +- +no\nnode-b +up to date +\d+ +- +- +-/,
  )
  const fleet = await ask('status', '--all')
  expect(fleet.stdout).toMatch(/^node-b +up to date +\d+ +- +-\n\n1 of 2 nodes are up to date\.$/m)
  expect(fleet.code).toBe(1)
  // Without a node, all that exists is listed, as many as are counted.
  expect((await ask('get', 'endpoints')).stdout).toMatch(/^web +127\.10\.0\.1 /m)
  const ofNodeA = await ask('get', 'endpoints', '--node', 'node-a')
  expect(ofNodeA).toMatchObject({ code: 0, stdout: '', stderr: 'No endpoints found in the namespace default.\n' })
  expect((await ask('get', 'services')).stdout).toMatch(/^web +ClusterIP +127\.97\.1\.7 +<none> +18087\/tcp +1$/m)

  const explain = async (...flags: string[]) =>
    JSON.parse((await ask('explain', 'web', '-o', 'json', ...flags)).stdout) as Explanation
  expect(await explain('--node', 'node-a')).toMatchObject({ node: 'node-a', works: false })
  const atB = await explain('--node', 'node-b')
  expect(atB).toMatchObject({ node: 'node-b', service: { endpoints: [{ isLocal: true }] } })
  expect((await ask('explain', 'web', '--node', 'node-x')).stderr).toMatch(/no node "node-x"\. Did you mean node-[ab]/)
  await watcher.stop()
  await expect
    .poll(async () => (await ask('get', 'nodes', 'node-b')).stdout, { timeout: 90_000 })
    .toMatch(/^node-b +disconnected +- +20\d\d-/m)
  writeFileSync(join(folder, 'state.yaml'), nodes + state.replace('127.10.0.1', '127.10.0.2'))
  await expect
    .poll(async () => (await ask('get', 'changes')).stdout, { timeout: 90_000 })
    .toMatch(/^\d+ .*default\/web 1→1$/m)
})

describe('get -w', () => {
  const service = (name: string) => state.replace('name: web', `name: ${name}`).replace('services:\n', '')

  async function watching() {
    const folder = commands.folder()
    const path = join(folder, 'state.yaml')
    const serve = (...names: string[]) => writeFileSync(path, `services:\n${names.map(service).join('')}`)
    serve('a-service-with-a-long-name')
    const socket = join(folder, 'core.sock')
    await core(['file', '-i', path], socket)
    const watch = commands.start('kpng', 'get', 'services', '-w', '--agent-socket', socket)
    await watch.says('a-service-with-a-long-name')
    return { watch, serve }
  }

  test('prints what is new below the same columns', async () => {
    const { watch, serve } = await watching()
    serve('a-service-with-a-long-name', 'b')
    await watch.says(/\nADDED +b .*\n/)
    serve('a-service-with-a-long-name')
    await watch.says(/\nDELETED +b .*\n/)
    const { code, stdout, stderr } = await watch.stop('SIGINT')
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('Error') })
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(4)
    expect(new Set(lines.map((line) => line.search(/TYPE|ClusterIP/))).size).toBe(1)
  })

  test('ends with exit code 0 when its output is closed', async () => {
    const { watch, serve } = await watching()
    watch.child.stdout?.destroy()
    serve('a-service-with-a-long-name', 'b')
    expect(await watch.finished).toMatchObject({ code: 0, stderr: '' })
  })
})
