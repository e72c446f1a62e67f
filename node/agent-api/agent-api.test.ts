import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentStatus, Explanation, FrontendRow, NodeRow, ServiceRow, SyncAnswer } from '@kpng/api'
import type { Backend, Changes, NodeView } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import type { Flow } from '@kpng/linux'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { change, endpoint, fullSync, ips, type TestView, tcp, view as viewOf } from '../../dataplane/testing/objects.js'
import { flowsByEndpoint } from './flows.js'
import {
  Activity,
  type AgentApiOptions,
  type AgentSocket,
  agentApi,
  agentSocketPath,
  askAgent,
  serveOnSocket,
} from './index.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const
const web = {
  name: 'web',
  ips: { clusterIps: ips('10.96.0.10') },
  ports: [tcp(80, { nodePort: 30080, targetPort: 8080 })],
  endpoints: [endpoint('10.244.1.5', { local: true }), endpoint('10.244.2.7')],
}

let folder: string
let socket: AgentSocket | undefined
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-agent-'))
})
afterEach(async () => {
  await socket?.close()
  socket = undefined
  await rm(folder, { recursive: true, force: true })
})

/** An agent whose backend has synced a view. */
async function started(options: Partial<AgentApiOptions> = {}) {
  const view = viewOf([web])
  const frontends = new FrontendTable()
  const activity = new Activity()
  const sync = (changes: Changes, error?: unknown) => {
    if (error === undefined) frontends.apply(view, changes, machine)
    const report = { view: view as NodeView, changes, startedAtMs: Date.now(), durationMs: 1.5, steps: [] }
    activity.onSync(error === undefined ? report : { ...report, error })
  }
  sync(fullSync)
  const api = agentApi({
    nodeName: 'a',
    version: '1.2.3',
    mode: 'nftables',
    activity,
    frontends,
    ...options,
  })
  socket = await serveOnSocket(join(folder, 'agent.sock'), api.handler)
  const path = socket.path
  return { view, path, sync, ask: <Answer>(query: string) => askAgent<Answer>(path, query) }
}

test('status says what runs, how often it synced, and what is not served', async () => {
  const { ask, sync, view } = await started({ skippedObjects: () => 3 })
  sync(
    change(view, 'thief', {
      name: 'thief',
      ips: { clusterIps: ips('10.96.0.66'), externalIps: ips('10.96.0.10') },
      ports: [tcp(80)],
    }),
  )
  sync({ ...fullSync, full: false }, new Error('the kernel refused'))
  expect(await ask<AgentStatus>('/v1/status')).toMatchObject({
    ...{ version: '1.2.3', node: 'a', role: 'node', backend: 'nftables', skippedObjects: 3 },
    ...{ syncs: 3, failedSyncs: 1, fullSyncs: 1, services: 2, endpoints: 2, frontends: 3 },
    problems: [{ service: 'default/thief', problem: '10.96.0.10:80/tcp belongs to Service default/web' }],
    lastSync: { number: 3, error: 'the kernel refused' },
  })
})

test('lists: services, endpoints, frontends, changes', async () => {
  const { ask, sync, view } = await started()
  sync(change(view, 'web', { ...web, endpoints: [endpoint('10.244.1.5')] }))
  const { services } = await ask<{ services: ServiceRow[] }>('/v1/services?namespace=default')
  expect(services).toMatchObject([{ name: 'web', clusterIps: ['10.96.0.10'], ports: ['80:30080/tcp'], endpoints: 1 }])
  expect(await ask('/v1/services?namespace=other')).toEqual({ services: [] })
  expect(await ask('/v1/endpoints')).toMatchObject({ endpoints: [{ service: 'web', ips: ['10.244.1.5'] }] })
  const { frontends } = await ask<{ frontends: FrontendRow[] }>('/v1/frontends')
  expect(frontends.map(({ id, inside }) => `${id} ${inside}`)).toEqual([
    '10.96.0.10:80/tcp 10.244.1.5:8080',
    'IPv4 node port 30080/tcp 10.244.1.5:8080',
  ])
  const { changes } = await ask<{ changes: SyncAnswer[] }>('/v1/changes')
  expect(changes.map(({ services, full }) => ({ services, full }))).toEqual([
    { services: [], full: true },
    { services: [{ service: 'default/web', before: 2, after: 1 }], full: false },
  ])
})

test('explain asks the core, and reads back what the data plane holds', async () => {
  const backend = {
    held: async () => ({ inside: ['10.244.1.5:8080'], outside: [], otherwise: 'refuse' }),
  } as unknown as Backend
  const { ask } = await started({
    backend,
    serviceAnswer: async (service) => ({
      service,
      isKnown: true,
      nearest: [],
      endpoints: [],
      kubernetes: { unknown: 'from the core' },
    }),
  })
  const answer = await ask<Explanation>('/v1/explain?what=web')
  expect(answer.diagnosis.unknown).toEqual(['What the objects in Kubernetes say: from the core.'])
  expect(answer.frontends[0]?.held?.differences).toEqual(['The data plane lacks 10.244.2.7:8080.'])
})

test('a node lists itself', async () => {
  const { ask, view } = await started({ nodeName: 'node-a' })
  const known = await ask<{ nodes: NodeRow[] }>('/v1/nodes')
  expect(known.nodes).toEqual([
    {
      name: 'node-a',
      addresses: [...(view.node?.addresses ?? [])],
      zone: '',
      podCidrs: [],
      isLocal: true,
      state: 'up to date',
    },
  ])
})

test('explain says what this backend does, and what on the node stops the packets', async () => {
  const features = {
    ...{ kinds: ['clusterIP', 'nodePort'], protocols: ['tcp'], sourceRanges: true, wholeAddresses: false },
    ...{ keepsSourceAddress: false, localhostNodePorts: false, guardsClusterIps: false },
  }
  const asked: unknown[] = []
  const { ask } = await started({
    backend: { features: () => features } as unknown as Backend,
    nodeCauses: async (traffic) => {
      asked.push(traffic)
      return [
        { code: 'KPNG-N008', level: 'problem', what: 'The table is full.', why: 'Nothing gets through.', todo: '' },
      ]
    },
  })
  const { works, diagnosis, frontends } = await ask<Explanation>('/v1/explain?what=web')
  expect(asked).toEqual([{ families: ['IPv4'], isForwarded: false, leavesNode: true }])
  expect({ works, headline: diagnosis.headline }).toEqual({
    works: false,
    headline: 'default/web is served on this node. But something on this node stops the packets.',
  })
  expect(diagnosis.findings.map(({ code }) => code)).toEqual(['KPNG-N008'])
  expect(frontends[0]?.routes[0]?.endpointSees).toBe('node')
  expect(await ask<Explanation>('/v1/explain?what=10.96.0.10:81')).toMatchObject({ outcome: 'passed', works: false })
})

test.each([
  ['/v1/explain', 'Say what to explain'],
  ['/v1/explain?what=a%20b', 'is not a Service, an address or a node port'],
  ['/v1/explain?what=web&from=me', '--from takes pod, node, outside or an IP address'],
  ['/v2/status', 'The agent API has no /v2/status.'],
])('%s is refused with a sentence', async (path, sentence) => {
  const { ask } = await started()
  await expect(ask(path)).rejects.toThrow(sentence)
})

test('nothing can be changed', async () => {
  const { path } = await started()
  const status = await new Promise((resolve) => {
    request({ socketPath: path, path: '/v1/status', method: 'POST' }, (response) => resolve(response.statusCode)).end()
  })
  expect(status).toBe(405)
})

describe('the socket', () => {
  test('is for its owner and group, and a killed process does not keep it', async () => {
    const { path } = await started()
    expect((await stat(path)).mode & 0o777).toBe(0o660)
    await expect(serveOnSocket(path, () => {})).rejects.toThrow(`Another kpng serves its agent API on ${path}.`)
  })
  test('a file in its place stays', async () => {
    const path = join(folder, 'file')
    await writeFile(path, '')
    await expect(serveOnSocket(path, () => {})).rejects.toThrow('is not a socket')
  })
  test('without an agent the error says how to start one', async () => {
    await expect(askAgent(join(folder, 'missing.sock'), '/v1/status')).rejects.toThrow('No kpng runs on this machine')
  })
  test('answers though somebody keeps every connection open: the oldest one is closed', async () => {
    const path = join(folder, 'streams.sock')
    const server = await serveOnSocket(path, (asked, response) => {
      if (asked.url === '/stream') response.write('event\n')
      else response.end('{"ok":true}')
    })
    const streams: Promise<string>[] = []
    const cut: number[] = []
    try {
      for (let index = 0; index < 80; index++) {
        streams.push(
          new Promise((resolve, reject) => {
            const asked = request({ socketPath: path, path: '/stream', agent: false }, (response) => {
              response.once('data', () => resolve('open'))
              response.once('error', () => cut.push(index))
            })
            asked.once('error', reject)
            asked.end()
          }),
        )
        await streams.at(-1)
      }
      expect(await askAgent(path, '/question')).toEqual({ ok: true })
      expect(cut.slice(0, 16)).toEqual(Array.from({ length: 16 }, (_, index) => index))
    } finally {
      await server.close()
    }
  })
  test('has a name of its own for each proxy name and platform', () => {
    expect(agentSocketPath('', {}, 'linux')).toMatch(/\/agent\.sock$/)
    expect(agentSocketPath('mine', {}, 'linux')).toMatch(/\/agent-mine\.sock$/)
    expect(agentSocketPath('mine', {}, 'win32')).toBe('\\\\.\\pipe\\kpng-agent-mine')
  })
})

test('flows are counted by endpoint: those that were redirected from this address and port', () => {
  const flow = (destination: string, answeredBy: string, isRedirected = true): Flow => ({
    ...{ family: 'IPv4', protocol: 'tcp', source: '10.0.0.9', sourcePort: 4242, destination, destinationPort: 80 },
    ...{ answeredBy, answeredByPort: 8080, isRedirected },
  })
  const at = { kind: 'clusterIP', family: 'IPv4', address: '10.96.0.10', protocol: 'tcp', port: 80 } as const
  const flows = [
    flow('10.96.0.10', '10.244.1.5'),
    flow('10.96.0.10', '10.244.2.7'),
    flow('10.96.0.10', '10.244.2.7'),
    flow('10.96.0.11', '10.244.2.7'),
    flow('10.96.0.10', '10.96.0.10', false),
  ]
  expect(flowsByEndpoint(at, flows)).toEqual([
    { endpoint: '10.244.2.7:8080', count: 2 },
    { endpoint: '10.244.1.5:8080', count: 1 },
  ])
  expect(flowsByEndpoint({ ...at, kind: 'nodePort', address: '' }, flows)).toHaveLength(2)
})

test('a long history is bounded', () => {
  const activity = new Activity()
  const view = viewOf([web]) as TestView
  for (let count = 0; count < 700; count++) {
    activity.onSync({ view, changes: { ...fullSync, full: false }, startedAtMs: 0, durationMs: 1, steps: [] })
  }
  expect(activity.syncs).toHaveLength(500)
  expect(activity.syncs.at(-1)?.number).toBe(700)
})
