import { join } from 'node:path'
import { serveOnSocket } from '@kpng/node/agent-api'
import { afterEach, expect, test } from 'vitest'
import { Commands } from './testing/commands.js'

const commands = new Commands()
afterEach(() => commands.cleanUp())

const now = new Date().toISOString()
const counts = { services: 0, endpoints: 0, frontends: 0, syncs: 1, fullSyncs: 1, failedSyncs: 0, skippedObjects: 0 }
const status = { version: '0', node: 'a', role: 'node', startedAt: now, now, problems: [], ...counts }
const sync = { number: 1, at: now, durationMs: 1, full: true, services: [], moreServices: 0 }

const source = (watch: object) => ({ stale: false, watches: { services: { connected: false, since: now, ...watch } } })

test.each<[string, object, number, string?]>([
  ['0 if all is well', { lastSync: sync }, 0],
  ['1 before the first sync', {}, 1],
  ['1 after a failed sync', { lastSync: { ...sync, error: 'nft said no' } }, 1],
  ['1 while the source has never answered', { lastSync: sync, source: source({}) }, 1, 'NEVER SYNCED'],
  ['1 while no change would arrive', { lastSync: sync, source: source({ lastEvent: now }) }, 1, 'DISCONNECTED'],
  ['1 if the state is stale', { lastSync: sync, source: { ...source({ lastEvent: now }), stale: true } }, 1, 'STALE'],
  ['0 if it is connected', { lastSync: sync, source: source({ connected: true, lastEvent: now }) }, 0, 'up to date'],
])('kpng status ends with code %s', async (_, more, expected, state = 'from a source') => {
  const socket = join(commands.folder(), 'agent.sock')
  const agent = await serveOnSocket(socket, (_request, response) =>
    response.end(JSON.stringify({ ...status, ...more })),
  )
  try {
    const { code, stdout } = await commands.run('kpng', 'status', '--agent-socket', socket)
    expect(stdout).toContain('Last sync')
    expect(stdout).toMatch(new RegExp(`^State +${state}`, 'm'))
    expect(code).toBe(expected)
  } finally {
    await agent.close()
  }
})

test.each([
  [503, 'This core does not know the cluster yet.', 3],
  [500, 'something broke', 3],
  [400, '"a b" is not a Service', 2],
])('an answer with status %i ends kpng get with code %s', async (statusCode, error, expected) => {
  const socket = join(commands.folder(), 'agent.sock')
  const agent = await serveOnSocket(socket, (_request, response) => {
    response.statusCode = statusCode
    response.end(JSON.stringify({ error }))
  })
  try {
    const { code, stderr } = await commands.run('kpng', 'get', 'services', '--agent-socket', socket)
    expect({ code, said: stderr.includes(error), help: stderr.includes('--help') }).toEqual({
      ...{ code: expected, said: true, help: expected === 2 },
    })
  } finally {
    await agent.close()
  }
})

test('what others wrote is shown, and a terminal does not obey it', async () => {
  const socket = join(commands.folder(), 'agent.sock')
  const name = 'web\u001b[2J\u202e\nkpng'
  const row = {
    namespace: 'default',
    name,
    type: name,
    clusterIps: [],
    externalIps: [],
    ports: [],
    verdict: 'partly',
    reason: name,
  }
  const agent = await serveOnSocket(socket, (request, response) => {
    const problems = [{ service: name, problem: name }]
    const source = { stale: true, reason: name, watches: {} }
    const answer = request.url?.startsWith('/v1/status') ? { ...status, problems, source } : { services: [row] }
    response.end(JSON.stringify(answer))
  })
  try {
    for (const words of [
      ['status'],
      ['get', 'services'],
      ['get', 'services', '-o', 'json'],
      ['status', '-o', 'json'],
    ]) {
      const { stdout } = await commands.run('kpng', ...words, '--agent-socket', socket)
      for (const obeyed of ['\u001b', '\u202e', '\nkpng\n']) expect(stdout).not.toContain(obeyed)
      expect(stdout).toContain('web\\u001b[2J\\u202e')
    }
  } finally {
    await agent.close()
  }
})
