import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AgentStatus, type Diagnosis, type Explanation, type ServiceRow, silentLog } from '@kpng/api'
import { SourceStatus } from '@kpng/client'
import { nodeViewOf } from '@kpng/core/sinks/local'
import { recordChanges } from '@kpng/core/sinks/record'
import { loadConnection } from '@kpng/core/sources/kube'
import { Store } from '@kpng/core/store'
import { serviceFacts } from '@kpng/core/view'
import { FrontendTable } from '@kpng/dataplane'
import { collected } from '@kpng/diagnose'
import { Activity, type AgentApi, agentApi, askAgent, serveOnSocket } from '@kpng/node/agent-api'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { keptKeys } from '../core/kubernetes/index.js'
import { readContent } from '../core/sources/file/read.js'
import { newRow } from '../dashboard/model/rows.js'
import { KubeRequests } from './agent/kube-requests.js'
import type { Context } from './context.js'
import { examine } from './doctor.js'
import { EventCounts } from './events.js'
import { dataplaneOptions, explainAsCore, explainWith, serviceAnswer } from './explain.js'
import { cases, type KubernetesObject, nodes } from './testing/services-table.js'

// Every surface gives the same answer about each Service of a table: the list, the page's row, the status, the doctor, and explain, by each way to ask.

const objects = [...nodes, ...cases.flatMap((each) => each.objects)]
const folder = mkdtempSync(join(tmpdir(), 'kpng-one-answer-'))
const manifests = join(folder, 'objects.json')
const record = join(folder, 'incident.kpng')
const kubeconfig = join(folder, 'kubeconfig')
const socketPath = join(folder, 'agent.sock')

const store = new Store()
const stop = new AbortController()
const kube = new KubeRequests()
const context: Context = {
  ...{
    log: silentLog,
    signal: stop.signal,
    nodeName: 'node-a',
    version: '1.2.3',
    kube: undefined,
    resolved: undefined,
  },
  ...{
    events: new EventCounts(),
    source: new SourceStatus(),
    verbosity: { get: () => 0, set: () => {} },
    stop: () => {},
  },
}
let server: Server
let api: AgentApi
let agent: Awaited<ReturnType<typeof serveOnSocket>>
const paths = cases.map(({ name }) => `default/${name}`)

beforeAll(async () => {
  writeFileSync(manifests, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  const kept = keptKeys([], [])
  const reading = { serviceProxyName: '', intern: String, keptOfServices: kept, keptOfNodes: kept }
  store.update((transaction) => {
    transaction.replaceAll(readContent('objects.json', JSON.stringify({ kind: 'List', items: objects }), reading))
    transaction.setSynced('services', 'endpoints', 'nodes')
  })
  await recorded()
  server = await apiServer()
  kube.connected(await loadConnection({ kubeconfig, env: {} }))
  const frontends = new FrontendTable(dataplaneOptions(store, {}))
  const activity = new Activity()
  const view = await nodeViewOf(store, 'node-a')
  const changes = { full: true, services: new Map(), node: true, serviceCidrs: true, triggers: [] }
  frontends.apply(view, changes, { families: ['IPv4', 'IPv6'], addresses: [] })
  activity.onSync({ view, changes, startedAtMs: 0, durationMs: 1, steps: [] })
  api = agentApi({
    ...{ nodeName: 'node-a', version: '1.2.3', mode: 'nftables', activity, frontends },
    serviceAnswer: (service) => serviceAnswer(service, store, {}, { kube, nodeName: 'node-a' }),
    factsOf: (service, used) => serviceFacts(store, service, 'node-a', used),
  })
  agent = await serveOnSocket(socketPath, api.handler)
})
afterAll(async () => {
  stop.abort()
  api.close()
  await agent.close()
  await (await kube.connection).close()
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})

async function recorded(): Promise<void> {
  const end = new AbortController()
  const recording = recordChanges({ store, path: record, log: silentLog, signal: end.signal })
  await vi.waitFor(() => expect(readFileSync(record, 'utf8')).toContain('"op":"sync"'), 60_000)
  end.abort()
  await recording
}

/** As far as kpng asks one: lists, watches in which nothing happens, single Services, and pods by their labels. */
async function apiServer(): Promise<Server> {
  const kinds: Readonly<Record<string, string>> = {
    ...{ services: 'Service', endpointslices: 'EndpointSlice', nodes: 'Node', pods: 'Pod' },
    networkpolicies: 'NetworkPolicy',
  }
  const made = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://server')
    const [, namespace, last = ''] = /(?:namespaces\/([^/]+)\/)?([^/]+(?:\/[^/]+)?)$/.exec(pathname) ?? []
    const [resource = '', name] = last.split('/').slice(last.startsWith('v1/') ? 1 : 0)
    const found = objects.filter((each) =>
      isMeant(each, kinds[resource], namespace, name, searchParams.get('labelSelector')),
    )
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
    if (pathname === '/version') answer(200, { gitVersion: 'v1.36.0' })
    else if (kinds[resource] === undefined) answer(404, { kind: 'Status', code: 404 })
    else if (searchParams.get('sendInitialEvents'))
      answer(400, { kind: 'Status', code: 400, message: 'sendInitialEvents: unknown' })
    else if (searchParams.get('watch')) response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders()
    else if (name !== undefined) answer(found[0] ? 200 : 404, found[0] ?? { kind: 'Status', code: 404 })
    else answer(200, { kind: 'List', metadata: { resourceVersion: '1' }, items: found })
  }).listen(0, '127.0.0.1')
  await once(made, 'listening')
  const url = `http://127.0.0.1:${(made.address() as AddressInfo).port}`
  const clusters = [{ name: 'a', cluster: { server: url } }]
  const contexts = [{ name: 'a', context: { cluster: 'a' } }]
  writeFileSync(kubeconfig, JSON.stringify({ kind: 'Config', 'current-context': 'a', clusters, contexts }))
  return made
}

function isMeant(
  object: KubernetesObject,
  kind?: string,
  namespace?: string,
  name?: string,
  labels?: string | null,
): boolean {
  const metadata = object.metadata as { name: string; namespace?: string; labels?: Record<string, string> }
  const wanted = (labels ?? '').split(',').filter((each) => /^[^!=]+=[^=]+$/.test(each))
  return (
    object.kind === kind &&
    (namespace === undefined || metadata.namespace === namespace) &&
    (name === undefined || metadata.name === name) &&
    wanted.every((each) => metadata.labels?.[each.split('=')[0] as string] === each.split('=')[1])
  )
}

const ways: Readonly<Record<string, (path: string) => Promise<Explanation>>> = {
  agent: (path) => askAgent<Explanation>(socketPath, `/v1/explain?what=${path}`),
  core: (path) => explainAsCore(new URLSearchParams({ what: path, node: 'node-a' }), store, {}, { ...context, kube }),
  'API server': (path) => explainWith(path, '/nowhere', { kubeconfig, node: 'node-a' }, context),
  files: (path) => explainWith(path, '/nowhere', { input: manifests, node: 'node-a' }, context),
  record: (path) => explainWith(path, '/nowhere', { input: record, node: 'node-a' }, context),
}

const explained = new Map<string, Map<string, Explanation>>()
async function explainedBy(way: string): Promise<Map<string, Explanation>> {
  const known = explained.get(way)
  if (known) return known
  const answers = new Map<string, Explanation>()
  for (const path of paths) answers.set(path, await (ways[way] as (path: string) => Promise<Explanation>)(path))
  explained.set(way, answers)
  return answers
}

const ofNode = ({ findings }: Diagnosis) => findings.filter(({ code }) => !code.startsWith('KPNG-K'))
const withoutK = (codes: readonly string[]) => codes.filter((code) => !code.startsWith('KPNG-K'))
const codesOf = ({ findings }: Diagnosis) => findings.map(({ code }) => code)

test('there are enough of them', () => {
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
  expect(cases.length).toBeGreaterThanOrEqual(60)
})

describe('explain says what the table says', () => {
  test.each(cases)('$name', async ({ name, verdict, says, code, kubernetes, command }) => {
    const { diagnosis, works } = (await explainedBy('agent')).get(`default/${name}`) as Explanation
    expect(diagnosis.headline).toContain(says)
    expect(diagnosis.verdict).toBe(verdict)
    const first = ofNode(diagnosis)[0]
    expect(first?.code).toBe(code)
    const ofKubernetes = diagnosis.findings.find((each) => each.code.startsWith('KPNG-K') && each.code === kubernetes)
    expect(ofKubernetes?.code).toBe(kubernetes)
    if (command !== undefined) expect((ofKubernetes ?? first)?.command).toContain(command)
    for (const each of diagnosis.findings) expect(each.command, each.code).toMatch(/\S/)
    const needsAction = diagnosis.findings.some(({ level }) => level !== 'note')
    expect(works).toBe(verdict === 'serving' && !needsAction)
  })
})

describe.each(['core', 'API server', 'files'])('explain from %s', (way) => {
  test('is the same as that of the agent', async () => {
    const [byAgent, other] = [await explainedBy('agent'), await explainedBy(way)]
    for (const path of paths) expect([path, other.get(path)?.diagnosis]).toEqual([path, byAgent.get(path)?.diagnosis])
  })
})

test('explain from a record is the same, without what the record does not have', async () => {
  const [byAgent, other] = [await explainedBy('agent'), await explainedBy('record')]
  for (const path of paths) {
    const [whole, part] = [byAgent.get(path)?.diagnosis as Diagnosis, other.get(path)?.diagnosis as Diagnosis]
    expect(part.unknown.join(), path).toContain('a record has only what a proxy uses')
    // A Service that no proxy takes is not in a record: that it is missing there is no proof.
    if (codesOf(whole).includes('KPNG-S015')) expect([path, part.verdict]).toEqual([path, 'unknown'])
    else expect([path, part.verdict, ofNode(part)]).toEqual([path, whole.verdict, ofNode(whole)])
    expect(whole.headline.startsWith(part.headline) || part.verdict === 'unknown', path).toBe(true)
  }
})

test('the list, the row of the page and the counts of the status are those of explain', async () => {
  const { services } = await askAgent<{ services: ServiceRow[] }>(socketPath, '/v1/services')
  const rows = new Map(services.map((row) => [`${row.namespace}/${row.name}`, row]))
  const counts: Record<string, number> = {}
  for (const [path, { diagnosis }] of await explainedBy('agent')) {
    const row = rows.get(path)
    if (codesOf(diagnosis).includes('KPNG-S015')) {
      expect(row, path).toBeUndefined()
      continue
    }
    counts[diagnosis.verdict] = (counts[diagnosis.verdict] ?? 0) + 1
    const { verdict, used, total } = diagnosis
    expect([path, row]).toMatchObject([path, { verdict, reason: diagnosis.reason, endpoints: used, total }])
    expect(row?.findings, path).toEqual(withoutK(codesOf(diagnosis)))
    expect(diagnosis.headline.startsWith(row?.headline ?? 'none'), path).toBe(true)
    const shown = newRow(path, { ...(row as ServiceRow), hints: false, sourceRanges: false, changedBy: 0 }).service
    expect([shown.verdict, shown.reason]).toEqual([verdict, diagnosis.reason])
  }
  expect((await askAgent<AgentStatus>(socketPath, '/v1/status')).verdicts).toEqual(counts)
})

test.each([
  ['files', { input: manifests, node: 'node-a' }],
  ['the API server', { kubeconfig, node: 'node-a' }],
])('the doctor collects the same, from %s', async (_, flags) => {
  const { report } = await examine(flags, context)
  const findings = report.sections.flatMap((section) => section.findings).filter(({ check }) => check === 'Services')
  const diagnoses = [...(await explainedBy('agent'))]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, each]) => each.diagnosis)
  expect(findings.map(({ check, ...finding }) => finding)).toEqual(collected(diagnoses))
  expect(findings.length).toBeGreaterThan(10)
})
