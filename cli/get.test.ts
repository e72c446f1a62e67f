import { join } from 'node:path'
import type { AgentStatus } from '@kpng/api'
import { type AgentSocket, serveOnSocket } from '@kpng/node/agent-api'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

// `kpng get` and `kpng status` in kubectl's ways, asked of an agent with these answers.

const row = (namespace: string, name: string, labels?: Record<string, string>) => ({
  ...{
    namespace,
    name,
    type: 'ClusterIP',
    clusterIps: ['10.96.0.10'],
    externalIps: [],
    ports: ['80/tcp'],
    endpoints: 2,
  },
  ...{ internalTrafficPolicy: 'Cluster', externalTrafficPolicy: 'Cluster', sessionAffinity: false },
  ...{ verdict: 'serving', headline: '', reason: '', findings: [] },
  ...(labels ? { labels } : {}),
})
const services = [
  row('default', 'web', { app: 'web', tier: 'front' }),
  row('default', 'db', { app: 'db' }),
  row('shop', 'web'),
]
const now = new Date().toISOString()
const status = {
  ...{ version: '0', node: 'a', role: 'node', startedAt: now, now, problems: [], services: 0, endpoints: 0 },
  ...{ frontends: 0, syncs: 1, fullSyncs: 1, failedSyncs: 0, skippedObjects: 0 },
} as const
const synced = { lastSync: { number: 1, at: now, durationMs: 1, full: true, services: [], moreServices: 0 } }

const commands = new Commands()
let agent: AgentSocket
let socket: string
let statuses: Partial<AgentStatus>[]
let listed: typeof services

beforeEach(async () => {
  socket = join(commands.folder(), 'agent.sock')
  statuses = [synced]
  listed = services
  agent = await serveOnSocket(socket, ({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://agent')
    const namespace = searchParams.get('namespace')
    const inNamespace = listed.filter((each) => namespace === null || each.namespace === namespace)
    const next = statuses.length > 1 ? statuses.shift() : statuses[0]
    response.end(JSON.stringify(pathname === '/v1/status' ? { ...status, ...next } : { services: inNamespace }))
  })
})
afterEach(async () => {
  await agent.close()
  await commands.cleanUp()
})

const kpng = (...args: string[]) => commands.run('kpng', ...args, '--agent-socket', socket)

test.each([
  [['get', 'svc', 'web', '--no-headers'], /^web +ClusterIP +10\.96\.0\.10 .*\n$/],
  [['get', 'svc/web', '-o', 'jsonpath={.name} {.schemaVersion}'], /^web 2$/],
  [['get', 'services', '-o', 'name'], /^service\/web\nservice\/db\n$/],
  [
    ['get', 'services', '-A', '-o', 'jsonpath={range .services[*]}{.namespace}/{.name} {end}'],
    /^default\/web default\/db shop\/web $/,
  ],
  [['get', 'services', '-l', 'app in (web), tier=front', '-o=name'], /^service\/web\n$/],
  [['get', 'services', '-l', '!tier', '-o', 'name'], /^service\/db\n$/],
  [['get', 'svc', 'web', '-o', 'yaml'], /^schemaVersion: 2\nnamespace: default\nname: web\n/],
  [['status', '-o', 'jsonpath={.asked}'], /^the agent of a, by its socket .*agent\.sock$/],
  [['status', '-o', 'yaml'], /^schemaVersion: 2\n/],
  [['status', '-o', 'name'], /^node\/a\n$/],
])('%j', async (args, expected) => {
  const { code, stdout, stderr } = await kpng(...args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(expected)
})

test.each<[string[], number, RegExp]>([
  [['get', 'services', '-n', 'empty'], 0, /^No services found in the namespace empty\.\n$/],
  [['get', 'svc', 'nothing'], 1, /^There is no "nothing" among the services in the namespace default\.\n$/],
  [
    ['get', 'svc', '-n', 'shop', '-l', 'app=web'],
    3,
    /passes no labels of services on\. Start it with --with-service-labels/,
  ],
  [['get', 'svc', '-l', 'a b'], 2, /unable to parse requirement: "a b"/],
  [['get', 'changes', '-l', 'app=web'], 2, /changes have none/],
  [['get', 'servises'], 2, /Did you mean services\?/],
  [['get', 'svc', '-o', 'xml'], 2, /Write text, wide, name, json, yaml or jsonpath=TEMPLATE/],
  [['get', 'svc', '-o', 'jsonpath={.a'], 2, /a brace is not closed/],
])('%j: nothing on standard output, and exit code %i', async (args, code, said) => {
  const done = await kpng(...args)
  expect(done).toMatchObject({ code, stdout: '' })
  expect(done.stderr).toMatch(said)
})

test('what is there is printed, and what is missing is named', async () => {
  expect(await kpng('get', 'svc', 'db', 'dbb', '--no-headers')).toMatchObject({
    ...{ code: 1, stdout: expect.stringMatching(/^db /), stderr: expect.stringContaining('There is no "dbb"') },
  })
})

describe('status --wait', () => {
  test('until all is well', async () => {
    statuses = [{}, {}, synced]
    expect(await kpng('status', '--wait', '60s')).toMatchObject({ code: 0 })
  })
  test('at most so long', async () => {
    statuses = [{}]
    expect(await kpng('status', '--wait', '10ms')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('none yet'),
    })
  })
  test('for a kpng that is not there', async () => {
    const done = await commands.run('kpng', 'status', '--wait', '10ms', '--agent-socket', `${socket}.not`)
    expect(done).toMatchObject({ code: 3, stderr: expect.stringContaining('Waited 0.01 s.') })
  })
})

test('status --watch prints it again when it changes', async () => {
  statuses = [synced, synced, { ...synced, services: 7 }]
  const watch = commands.start('kpng', 'status', '--watch', '--agent-socket', socket)
  await watch.says('7 services')
  const { code, stdout } = await watch.stop('SIGINT')
  expect(code).toBe(0)
  expect(stdout.match(/^kpng /gm)).toHaveLength(2)
})

test('status --all of a node says whom to ask', async () => {
  expect(await kpng('status', '--all')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('kubectl kpng status --all'),
  })
})

test('names are completed from what the agent knows', async () => {
  const complete = async (...words: string[]) => (await commands.run('kpng', '__complete', ...words)).stdout.split('\n')
  expect(await complete('explain', '--agent-socket', socket, '')).toEqual(['web', 'db', ''])
  expect(await complete('get', 'svc', '--agent-socket', socket, '-n', 'shop', 'w')).toEqual(['web', ''])
  expect(await complete('get', 'svc', '--agent-socket', `${socket}.not`, '')).toEqual([''])
})
