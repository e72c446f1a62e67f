import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import type { AgentStatus, Explanation } from '@kpng/api'
import { type Playground, startPlayground } from '@kpng/playground'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'
import { freePort } from './testing/pages.js'

// `kpng explain`, `kpng status`, `kpng get`, `to-record` and `replay` as users run them.

const commands = new Commands()
afterEach(() => commands.cleanUp())

const state = new URL('../examples/state.yaml', import.meta.url).pathname

describe('explain, from a file', () => {
  test('a Service, for people', async () => {
    const { code, stdout, stderr } = await commands.run('kpng', 'explain', 'web', '-i', state)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    await expect(stdout.replace(state, 'state.yaml')).toMatchFileSnapshot('testing/explain-web.txt')
  })
  test('and for programs', async () => {
    const { stdout } = await commands.run(
      'kpng',
      'explain',
      '10.96.0.10:80',
      '-i',
      state,
      '--from',
      'node',
      '-o',
      'json',
    )
    const { works, frontends }: Explanation = JSON.parse(stdout)
    expect(works).toBe(true)
    expect(frontends.map(({ id, routes }) => [id, routes[0]?.from])).toEqual([['10.96.0.10:80/tcp', 'this node']])
  })
  test.each([
    ['wep', [], 1, 'There is no Service default/wep. Did you mean default/web?'],
    ['cache', ['--node', 'vm-001'], 1, 'default/cache drops connections on this node: internalTrafficPolicy is Local'],
    ['a b', [], 2, 'is not a Service, an address or a node port'],
    ['web', ['--node', 'vm-0001'], 2, 'The cluster has no node "vm-0001". Did you mean vm-001?'],
    ['web', ['--from', 'me'], 2, '--from takes pod, node, outside or an IP address, not "me".'],
  ])('%s %j', async (what, flags, code, sentence) => {
    const done = await commands.run('kpng', 'explain', what, '-i', state, ...flags)
    expect(done.stdout + done.stderr).toContain(sentence)
    expect(done.code).toBe(code)
  })
})

describe('explain, from an API server', () => {
  let playground: Playground
  beforeAll(async () => {
    playground = await startPlayground({ runPods: false })
    const service = (name: string, spec: object, labels = {}) =>
      playground.objects.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name, labels }, spec })
    const ports = [{ port: 80 }]
    service('no-match', { selector: { app: 'nothing' }, ports })
    service('headless', { clusterIP: 'None', selector: { app: 'web' }, ports })
    service('others', { ports }, { 'service.kubernetes.io/service-proxy-name': 'mine' })
  })
  afterAll(() => playground.close())

  test.each([
    ['no-match', 'Its selector (app=nothing) matches no pod in the namespace default.'],
    ['headless', 'default/headless is not served by this kpng: it is headless'],
    ['others', 'so the proxy of that name serves it.'],
    ['no-mach', 'Did you mean default/no-match?'],
  ])('%s', async (name, sentence) => {
    const { code, stdout, stderr } = await commands.run(
      'kpng',
      'explain',
      name,
      '--kubeconfig',
      playground.kubeconfigPath,
    )
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(stdout).toContain(sentence)
  })
})

describe('a running kpng', () => {
  async function running() {
    const socket = join(commands.folder(), 'agent.sock')
    const [healthz, metrics] = await Promise.all([freePort(), freePort()])
    const kpng = commands.start(
      'kpng',
      ...['-v', '2', 'file', '-i', state, 'to-local', '--node-name', 'vm-001', 'to-userspacelin', '--capture', 'none'],
      ...['--healthz-bind-address', `127.0.0.1:${healthz}`, '--metrics-bind-address', `127.0.0.1:${metrics}`],
      ...['--agent-socket', socket],
    )
    await kpng.says('Synced')
    const ask = (...question: string[]) => commands.run('kpng', ...question, '--agent-socket', socket)
    return { kpng, ask }
  }

  test('says how it is', async () => {
    const { ask } = await running()
    const { stdout } = await ask('status')
    expect(stdout).toContain('3 services, 3 endpoints')
    const status: AgentStatus = JSON.parse((await ask('status', '-o', 'json')).stdout)
    expect(status).toMatchObject({ node: 'vm-001', backend: 'userspace', services: 3, failedSyncs: 0 })
  })

  test('lists what it serves, in kubectl’s ways', async () => {
    const { ask } = await running()
    expect((await ask('get', 'svc')).stdout).toMatch(/^NAME +TYPE +CLUSTER-IP[^\n]*\ncache +ClusterIP +10.96.0.20/)
    expect((await ask('get', 'services', '-A')).stdout).toMatch(/\nkube-system +dns /)
    expect(await ask('get', 'endpoints', '-n', 'nowhere')).toMatchObject({
      ...{ code: 0, stdout: '', stderr: 'No endpoints found in the namespace nowhere.\n' },
    })
    expect((await ask('get', 'frontends', '-A', '-o', 'wide')).stdout).toContain('10.244.1.5:8080,10.244.2.6:8080')
    expect((await ask('get', 'changes', '-o', 'yaml')).stdout).toContain('full: true')
    expect((await ask('get', 'pods')).stderr).toContain(
      'kpng get knows services, endpoints, nodes, frontends, changes, not "pods".',
    )
    expect((await ask('get', 'node')).stdout).toMatch(/^NAME +STATE [^\n]*\nvm-001 +up to date .* yes\n$/)
  })

  test('explains with what its data plane holds', async () => {
    const { ask } = await running()
    const { stdout } = await ask('explain', 'web')
    expect(stdout).toContain('default/web is served on this node.')
    expect(stdout).toMatch(/Endpoints: this node uses 3 of 3/)
  })

  test('explains what a connection to an endpoint shows', async () => {
    // Endpoints on this machine: one port is open, and nothing listens on the other.
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const manifest = join(commands.folder(), 'state.yaml')
    const loopback = (ports: string) => `services:
- service:
    namespace: default
    name: web
    type: ClusterIP
    ips: { clusterips: { v4: [10.96.0.10] }, externalips: {} }
    ports: [{ name: http, protocol: 1, port: 80, targetport: ${ports} }]
  endpoints:
  - { endpoint: { ips: { v4: [127.0.0.1] } }, conditions: { ready: true } }
nodes:
- { name: a, addresses: [127.0.0.1] }
`
    const probe = async (targetPort: number) => {
      writeFileSync(manifest, loopback(String(targetPort)))
      return await commands.run('kpng', 'explain', 'web', '-i', manifest, '--probe')
    }
    try {
      expect(await probe(port)).toMatchObject({ code: 0, stdout: expect.stringContaining('takes connections.') })
    } finally {
      server.close()
    }
    expect(await probe(1)).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('✗ 127.0.0.1:1 refuses connections: nothing listens on the port.'),
    })
  })

  test('is not there: the error says how to start one', async () => {
    const { code, stderr } = await commands.run('kpng', 'status', '--agent-socket', join(commands.folder(), 'no.sock'))
    expect(code).toBe(3)
    expect(stderr).toContain('No kpng runs on this machine')
  })
})

test('a record is replayed into a backend', async () => {
  const path = join(commands.folder(), 'record.jsonl')
  const recording = commands.start('kpng', '-v', '2', 'file', '-i', state, 'to-record', '-o', path)
  await recording.says('Recorded a change')
  expect((await recording.stop()).code).toBe(0)
  expect(readFileSync(path, 'utf8').split('\n')[0]).toContain('"kpng":"record"')
  const words = ['replay', '-i', path, 'to-local', '--node-name', 'vm-001', '--once', 'to-json']
  const { code, stdout } = await commands.run('kpng', ...words)
  expect(code).toBe(0)
  expect(stdout).toContain('"10.244.2.6"')
  const wrong = await commands.run('kpng', 'replay', '-i', state, 'to-local', '--once', 'to-json')
  expect(wrong.stderr).toContain('is not a record of kpng')
})

/** A socket as a killed process leaves it: it exists, and nobody answers. */
async function deadSocket(path: string): Promise<void> {
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('listens'))`
  const server = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(server.stdout, 'data')
  server.kill('SIGKILL')
  await once(server, 'exit')
  expect(existsSync(path)).toBe(true)
}

test('explain asks the API server if the socket is one that a killed kpng left', async () => {
  const folder = commands.folder()
  const kubeconfigPath = join(folder, 'kubeconfig')
  const playground = await startPlayground({ kubeconfigPath })
  try {
    await deadSocket(join(folder, 'agent.sock'))
    const env = { KUBECONFIG: kubeconfigPath, RUNTIME_DIRECTORY: folder }
    const { code, stdout } = await commands.startWith(env, 'kpng', 'explain', 'kubernetes').finished
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('default/kubernetes') })
  } finally {
    await playground.close()
  }
})

test('after a replay the last state stays until kpng is stopped', async () => {
  const record = join(commands.folder(), 'record')
  const recorder = commands.start('kpng', 'file', '-i', state, 'to-record', '-o', record, '-v', '2')
  await recorder.says('Recorded a change')
  await recorder.stop()
  const replay = commands.start('kpng', 'replay', '-i', record, 'to-local', '--node-name', 'vm-001', 'to-json')
  await replay.says('The record was replayed')
  // Time for a process with nothing left to do to end.
  await commands.run('kpng', 'version')
  expect(await replay.stop()).toMatchObject({ code: 0, stderr: expect.stringContaining('Stopping signal="SIGTERM"') })
})
