import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import type { Explanation, FrontendAnswer } from '@kpng/api'
import { expect, onTestFinished, test } from 'vitest'
import { probed } from './probe.js'

const frontend = (protocol: 'tcp' | 'udp', endpoints: readonly string[]): FrontendAnswer => ({
  ...{ id: `10.96.0.10:80/${protocol}`, kind: 'cluster IP', service: 'default/web', portName: '', protocol, notes: [] },
  routes: [{ from: 'a pod', outcome: 'endpoint', sentence: '', endpoints }],
})

const explanation = (...frontends: FrontendAnswer[]): Explanation => ({
  ...{ schemaVersion: 2, node: 'a', question: 'default/web', works: true, frontends },
  diagnosis: {
    ...{ service: 'default/web', verdict: 'serving', headline: 'It is served.', reason: '' },
    ...{ findings: [], used: 1, unknown: [] },
  },
})

/** Long enough for a machine that has much to do: none of these endpoints stays silent. */
const limitMs = 90_000

async function listening(host: string): Promise<string> {
  const server = createServer((socket) => socket.destroy()).listen(0, host)
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

test('an endpoint that takes a connection changes nothing, each is tried once, and UDP is not tried', async () => {
  const endpoint = await listening('127.0.0.1')
  const asked = explanation(frontend('tcp', [endpoint]), frontend('tcp', [endpoint]), frontend('udp', ['127.0.0.1:9']))
  const { probes, ...rest } = await probed(asked, { limitMs })
  expect(probes).toEqual([{ endpoint, result: 'connected', sentence: `${endpoint} takes connections.` }])
  expect({ ...rest }).toEqual(asked)
})

test('an endpoint that refuses connections, and one that cannot be reached', async () => {
  const refusing = await listening('127.0.0.1').then((endpoint) => endpoint.replace(/\d+$/, '1'))
  const asked = explanation(frontend('tcp', [await listening('127.0.0.1'), refusing, '255.255.255.255:80']))
  const { probes, works, diagnosis } = await probed(asked, { limitMs })
  expect(probes?.map(({ result }) => result)).toEqual(['connected', 'refused', 'unreachable'])
  expect([works, diagnosis.headline]).toEqual([false, 'It is served. 2 of 3 endpoints do not take a connection.'])
  expect(diagnosis.findings.map(({ code }) => code)).toEqual(['KPNG-D002'])
})

test.skipIf(process.platform !== 'linux')('an endpoint that does not answer', async () => {
  // A process that is stopped accepts nothing, and its queue has room for two connections.
  const script = `const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () =>
    console.log(server.address().port))`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const port = Number(line.toString())
  child.kill('SIGSTOP')
  await expect.poll(() => readFileSync(`/proc/${child.pid}/stat`, 'utf8')).toContain(') T ')
  for (let queued = 0; queued < 2; queued++) {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
  }
  const { probes, works } = await probed(explanation(frontend('tcp', [`127.0.0.1:${port}`])), { limitMs: 300 })
  expect(probes?.map(({ sentence }) => sentence)).toEqual([`127.0.0.1:${port} does not answer within 0.3 s.`])
  expect(works).toBe(false)
})

test('not more than the limit are tried, and the rest is counted', async () => {
  const endpoints = await Promise.all(Array.from({ length: 3 }, () => listening('127.0.0.1')))
  const { probes, probesLeftOut } = await probed(explanation(frontend('tcp', endpoints)), { limitMs, most: 2 })
  expect([probes?.length, probesLeftOut]).toEqual([2, 1])
})
