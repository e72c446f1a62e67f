import { type Playground, startPlayground } from '@kpng/playground'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Answer } from './caller.js'
import { makeDemo } from './demo.js'
import { type DataPlane, Session } from './session.js'

// With real objects, and a data plane that answers as the test says.

let playground: Playground
let answer: Answer
let lines: string[]
beforeEach(async () => {
  playground = await startPlayground({ runPods: false })
  makeDemo(playground)
  lines = []
})
afterEach(() => playground.close())

const dataPlane: DataPlane = {
  title: 'test',
  servesApiService: true,
  options: {},
  agentSocket: '/tmp/agent.sock',
  call: async () => answer,
  hints: () => [{ command: 'nft list ruleset', effect: '' }],
  serve: async () => {},
  close: async () => {},
}

const now = () => performance.timeOrigin + performance.now()

function start(): Session {
  return new Session(playground, dataPlane, (line) => line !== undefined && lines.push(line.replace(/^\S+ /, '')))
}

/** Calls until the session has seen a number of answers, or a problem. */
async function callOnce(session: Session): Promise<void> {
  const stop = new AbortController()
  const calling = session.callUntil(stop.signal)
  await expect.poll(() => session.answer, { timeout: 90_000 }).toBeDefined()
  stop.abort()
  await calling
}

test("another playground's pod is never shown as one of ours", async () => {
  answer = { pod: 'web-of-another', ms: 1 }
  const session = start()
  await callOnce(session)
  expect(session.answer).toMatchObject({
    problem: 'something answers that is not a pod of this playground',
  })
  expect(session.answers.size).toBe(0)
})

test('a Service that a label gives to another proxy is not a riddle', async () => {
  answer = { problem: 'connection refused', ms: 1 }
  const service = playground.objects.get('Service', 'web')
  const labels = { 'service.kubernetes.io/service-proxy-name': 'other' }
  playground.objects.apply({ ...service, apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', labels } })
  const session = start()
  await callOnce(session)
  expect(lines.at(-1)).toMatch(/nobody: connection refused; the label .* gives the Service to "other"$/)
})

test('the latency is from the change to the end of the first sync that can have it', () => {
  const session = start()
  session.synced({ startedAtMs: now(), endedAtMs: now() + 500 })
  expect(session.change).toEqual({ what: expect.stringMatching(/^Service web at /), at: expect.any(String) })
  const before = now()
  playground.objects.delete('Service', 'web')
  const after = now()
  session.synced({ startedAtMs: before - 1, endedAtMs: after + 7 })
  expect(session.change?.what).not.toBe('Service web deleted')
  session.synced({ startedAtMs: after + 5, endedAtMs: after + 7 })
  expect(session.change?.what).toBe('Service web deleted')
  expect(session.change?.latencyMs).toBeGreaterThanOrEqual(7)
  expect(session.change?.latencyMs).toBeLessThanOrEqual(7 + after - before)
  session.synced({ startedAtMs: after + 20, endedAtMs: after + 30 })
  expect(lines).toHaveLength(2)
})

test('a change that the data plane has nothing to do with has no latency, and does not make that of the next one longer', () => {
  const session = start()
  session.synced({ startedAtMs: now(), endedAtMs: now() })
  const endpoint = (state: 'ready' | 'draining') => ({
    addresses: ['127.10.0.9'],
    conditions: { ready: state === 'ready', serving: true, terminating: state === 'draining' },
    targetRef: { kind: 'Pod', name: `web-${state}` },
  })
  const write = (...endpoints: object[]) =>
    playground.objects.apply({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-by-hand', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints,
      ports: [{ name: 'http', port: 8080 }],
    })
  write(endpoint('ready'))
  session.synced({ startedAtMs: now(), endedAtMs: now() })
  expect(session.change).toMatchObject({ what: 'web-ready ready', latencyMs: expect.any(Number) })
  write(endpoint('ready'), { ...endpoint('draining'), addresses: ['127.10.0.8'] })
  expect(session.change).toEqual({ what: 'web-draining draining', at: expect.any(String) })
  const before = now()
  playground.objects.delete('Service', 'web')
  session.synced({ startedAtMs: now(), endedAtMs: now() })
  expect(session.change?.what).toBe('Service web deleted')
  expect(session.change?.latencyMs).toBeLessThanOrEqual(now() - before)
})

test('hints have the names that there are', () => {
  const session = start()
  const commands = session.hints().map(({ command }) => command)
  expect(commands).toContain(`export KUBECONFIG=${playground.kubeconfigPath}`)
  expect(commands).toContain('nft list ruleset')
  expect(commands.join('\n')).not.toMatch(/[<>…]/)
})
