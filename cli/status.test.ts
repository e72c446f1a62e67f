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

test.each([
  ['0 if all is well', { lastSync: sync }, 0],
  ['1 before the first sync', {}, 1],
  ['1 after a failed sync', { lastSync: { ...sync, error: 'nft said no' } }, 1],
])('kpng status ends with code %s', async (_, more, expected) => {
  const socket = join(commands.folder(), 'agent.sock')
  const agent = await serveOnSocket(socket, (_request, response) =>
    response.end(JSON.stringify({ ...status, ...more })),
  )
  try {
    const { code, stdout } = await commands.run('kpng', 'status', '--agent-socket', socket)
    expect(stdout).toContain('Last sync')
    expect(code).toBe(expected)
  } finally {
    await agent.close()
  }
})
