import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LiveChanges, LivePulse, LiveService, LiveSnapshot } from '@kpng/api'
import type { Backend, Changes, NodeView } from '@kpng/client'
import { FrontendTable } from '@kpng/dataplane'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { change, endpoint, fullSync, ips, tcp, view as viewOf } from '../../dataplane/testing/objects.js'
import { type ReceivedEvent, readEvents } from '../testing/event-reader.js'
import {
  Activity,
  type AgentApi,
  type AgentApiOptions,
  type AgentSocket,
  agentApi,
  askAgent,
  serveOnSocket,
} from './index.js'

const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const
const web = {
  name: 'web',
  ips: { clusterIps: ips('10.96.0.10') },
  ports: [tcp(80, { targetPort: 8080 })],
  endpoints: [endpoint('10.244.1.5', { local: true }), endpoint('10.244.2.7')],
}
const api = { ...web, name: 'api', ips: { clusterIps: ips('10.96.0.11') } }

let folder: string
let socket: AgentSocket | undefined
let running: AgentApi | undefined
const readers: (() => void)[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kpng-live-'))
})
afterEach(async () => {
  for (const end of readers.splice(0)) end()
  running?.close()
  await socket?.close()
  await rm(folder, { recursive: true, force: true })
})

type Event = ReceivedEvent<LiveSnapshot & LiveChanges & LivePulse>

/** An agent whose backend has synced a view of one Service. */
async function started(options: Partial<AgentApiOptions> = {}) {
  const view = viewOf([web])
  const frontends = new FrontendTable()
  const activity = new Activity(Date.now(), options.factsOf)
  const sync = (changes: Changes, error?: unknown) => {
    activity.onQueued(changes)
    if (error === undefined) frontends.apply(view, changes, machine)
    const report = { view: view as NodeView, changes, startedAtMs: Date.now(), durationMs: 1.5, steps: [] }
    activity.onSync(error === undefined ? report : { ...report, error })
  }
  sync(fullSync)
  running = agentApi({ ...{ nodeName: 'a', version: '1.2.3', mode: 'nftables', activity, frontends }, ...options })
  socket = await serveOnSocket(join(folder, 'agent.sock'), running.handler)
  const { path: socketPath } = socket
  const read = (headers: Readonly<Record<string, string>> = {}) => {
    const reader = readEvents<Event['data']>({ socketPath, path: '/v1/stream', headers })
    readers.push(reader.end)
    const changes = () => reader.events.filter(({ event }) => event === 'changes')
    return { ...reader, changes, first: () => until(() => reader.events[0]) }
  }
  const ask = <Answer>(path: string) => askAgent<Answer>(socketPath, path)
  return { view, sync, read, ask, activity, live: running.live }
}

async function until<T>(look: () => T | undefined | false): Promise<T> {
  await expect.poll(look, { timeout: 90_000, interval: 10 }).toBeTruthy()
  return look() as T
}

describe('a reader', () => {
  test('gets everything first, and then what changed, together', async () => {
    const { sync, view, read } = await started()
    const reader = read()
    expect(await reader.first()).toMatchObject({
      event: 'snapshot',
      data: { services: [{ name: 'web', endpoints: 2, verdict: 'serving', changedBy: 0 }], changes: [{ number: 1 }] },
    })
    sync(change(view, 'web', { ...web, endpoints: [] }))
    sync(change(view, 'api', api))
    sync(change(view, 'web', undefined))
    const event = await until(() => reader.changes()[0])
    expect(event.data).toMatchObject({
      services: { 'default/web': null, 'default/api': { endpoints: 2, changedBy: 3 } },
      syncs: [{ number: 2 }, { number: 3, sentence: 'default/api is new, with 2 endpoints' }, { number: 4 }],
      status: { services: 1, endpoints: 2, frontends: 1 },
    })
    expect(reader.changes()).toHaveLength(1)
  })

  test('gets at most five events per second, each Service once in each', async () => {
    const { sync, view, read } = await started()
    const reader = read()
    await reader.first()
    const began = performance.now()
    for (let count = 1; count <= 300; count++) {
      sync(change(view, 'web', { ...web, endpoints: [endpoint(`10.244.1.${(count % 200) + 1}`)] }))
      if (count % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await until(() => reader.changes().at(-1)?.data.syncs.at(-1)?.number === 301)
    const seconds = (performance.now() - began) / 1000
    expect(reader.changes().length).toBeLessThanOrEqual(Math.ceil(seconds * 5) + 1)
    const numbers = reader.changes().flatMap(({ data }) => data.syncs.map(({ number }) => number))
    expect(numbers).toEqual(Array.from({ length: 300 }, (_, index) => index + 2))
  })

  test('gets the same compressed, each event at once', async () => {
    const { sync, view, read } = await started()
    const [packed, plain] = [read({ 'accept-encoding': 'br, gzip' }), read()]
    await Promise.all([packed.first(), plain.first()])
    expect([packed.state.encoding, plain.state.encoding]).toEqual(['gzip', ''])
    for (const name of ['a', 'b', 'c']) {
      sync(change(view, name, { ...api, name }))
      await until(() => packed.changes().some(({ data }) => `default/${name}` in data.services))
    }
    await until(() => plain.changes().length === packed.changes().length)
    expect(packed.changes()).toEqual(plain.changes())
    expect(packed.state.bytes).toBeLessThan(plain.state.bytes)
  })

  test('gets a pulse every second', async () => {
    const { read } = await started()
    const reader = read()
    const pulse = await until(() => reader.events.find(({ event }) => event === 'pulse'))
    expect(pulse.data.sample).toMatchObject({ syncs: expect.any(Number), memory: expect.any(Number) })
    expect(pulse.id).toBe(reader.events[0]?.id)
  })
})

describe('a reader that comes back', () => {
  test('gets what it missed, and no more', async () => {
    const { sync, view, read } = await started()
    const first = read()
    await first.first()
    sync(change(view, 'api', api))
    const { id } = await until(() => first.changes()[0])
    first.end()
    await until(() => first.state.isOver)
    sync(change(view, 'web', undefined))
    sync(change(view, 'new', { ...api, name: 'new', ips: { clusterIps: ips('10.96.0.12') } }))
    const again = read({ 'last-event-id': id })
    const event = await again.first()
    expect(event.event).toBe('changes')
    expect(event.data.services).toEqual({
      'default/web': null,
      'default/new': expect.objectContaining({ name: 'new' }),
    })
    expect(event.data.syncs.map(({ number }) => number)).toEqual([3, 4])
    const idle = read({ 'last-event-id': event.id })
    expect((await idle.first()).data).toMatchObject({ services: {}, syncs: [] })
  })

  test.each(['another.1', '', 'x', '%s.999', '%s.0', '%s.1x'])('with the id %j gets everything', async (text) => {
    const { read } = await started()
    const first = read()
    const [instance = ''] = (await first.first()).id.split('.')
    const again = read({ 'last-event-id': text.replace('%s', instance) })
    expect((await again.first()).event).toBe('snapshot')
  })

  test('while a sync of everything changed nothing gets no rows', async () => {
    const { sync, read } = await started()
    const reader = read()
    await reader.first()
    sync(fullSync)
    const event = await until(() => reader.changes()[0])
    expect(event.data).toMatchObject({ services: {}, syncs: [{ number: 2, full: true }] })
  })
})

test('nothing but syncs and samples is kept while nobody reads', async () => {
  const { sync, view, live, read } = await started({
    factsOf: () => {
      throw new Error('nobody wants to know')
    },
  })
  sync(change(view, 'api', api))
  expect(live.stream.readers).toBe(0)
  // Its row cannot be made, so the stream ends: it was not made before.
  const reader = read()
  await until(() => reader.state.isOver)
  expect(reader.events).toEqual([])
  // Nor is something left of it: the next one fails in the same way.
  const next = read()
  await until(() => next.state.isOver)
  expect(next.events).toEqual([])
})

describe('rows', () => {
  const rowOf = async (facts: Partial<LiveService>, options: Partial<AgentApiOptions>, service = web as typeof web) => {
    const { sync, view, read } = await started(options)
    sync(change(view, 'web', service))
    const reader = read()
    const [row] = (await reader.first()).data.services
    expect(row).toMatchObject(facts)
  }
  const facts = { total: 3, reasons: new Map(), leftOut: {}, onlyStandIns: false }

  test('without a core in this process, only what is used is known', async () => {
    const { read } = await started()
    const reader = read()
    const [row] = (await reader.first()).data.services
    expect(row).not.toHaveProperty('total')
  })
  test('left out because they are not ready: the others serve all connections', () =>
    rowOf(
      { verdict: 'serving', reason: '1 not ready of 3 endpoints', endpoints: 2, total: 3 },
      { factsOf: () => ({ ...facts, leftOut: { 'not-ready': 1 } }) },
    ))
  test('left out because of hints: serving', () =>
    rowOf({ verdict: 'serving', hints: true }, { factsOf: () => ({ ...facts, leftOut: { 'hints-other-zone': 1 } }) }))
  test('only stand-ins: draining', () =>
    rowOf({ verdict: 'draining' }, { factsOf: () => ({ ...facts, leftOut: { 'not-ready': 1 }, onlyStandIns: true }) }))
  test('no endpoint: refused', () => rowOf({ verdict: 'refused' }, {}, { ...web, endpoints: [] }))
  test('another one has the address', async () => {
    const { sync, view, read } = await started()
    const reader = read()
    await reader.first()
    sync(
      change(view, 'x', {
        ...api,
        name: 'x',
        ips: { clusterIps: ips('10.96.0.20'), externalIps: ips('10.9.9.9') },
      } as typeof api),
    )
    sync(
      change(view, 'y', {
        ...api,
        name: 'y',
        ips: { clusterIps: ips('10.96.0.21'), externalIps: ips('10.9.9.9') },
      } as typeof api),
    )
    const stateOf = (path: string) =>
      reader.changes().reduce<LiveService | null | undefined>((row, { data }) => data.services[path] ?? row, undefined)
    await until(() => stateOf('default/y')?.verdict === 'partly')
    // Its row changes, though nothing but the other Service did.
    sync(change(view, 'x', undefined))
    await until(() => stateOf('default/y')?.verdict === 'serving')
  })
})

describe('a data plane that does not hold what it should', () => {
  const held = { inside: ['10.244.1.5:8080'], outside: [], otherwise: 'refuse' as const }

  test('is shown when somebody asks, until a sync of the Service', async () => {
    const { sync, view, read, ask } = await started({ backend: { held: async () => held } as unknown as Backend })
    const reader = read()
    await reader.first()
    await ask('/v1/explain?what=web')
    const states = () => reader.changes().flatMap(({ data }) => data.services['default/web']?.verdict ?? [])
    await until(() => states().at(-1) === 'differs')
    sync(change(view, 'web', { ...web, endpoints: [endpoint('10.244.1.5')] }))
    await until(() => states().at(-1) === 'serving')
  })

  test('is shown after a repair, and why everything was compared', async () => {
    const { sync, read, ask, activity, live } = await started()
    const reader = read()
    await reader.first()
    activity.onDrift('something was deleted')
    expect(await ask('/v1/status')).toMatchObject({ drift: { reason: 'something was deleted' } })
    sync(fullSync, new Error('not yet'))
    live.onRepaired(['default/web'])
    sync(fullSync)
    expect(await ask('/v1/status')).not.toHaveProperty('drift')
    const states = () => reader.changes().flatMap(({ data }) => data.services['default/web']?.verdict ?? [])
    await until(() => states().at(-1) === 'serving')
    expect(states()).toEqual(['differs', 'serving'])
    const { services } = reader.changes().flatMap(({ data }) => data.syncs)[1] ?? {}
    expect(services).toEqual([{ service: 'default/web', before: 2, after: 2 }])
    expect(reader.changes().flatMap(({ data }) => data.syncs.map(({ sentence }) => sentence))).toEqual([
      'Everything was compared with the data plane: something was deleted',
      'Another program had changed the rules of default/web: they were repaired',
    ])
  })
})

test('a sync says when its parts were done', async () => {
  const { view, read, activity } = await started()
  const reader = read()
  await reader.first()
  const changes = {
    ...change(view, 'web', { ...web, endpoints: [endpoint('10.244.1.5')] }),
    triggers: [{ service: 'default/web', unixMs: 900 }],
  }
  const timeline = { revision: 2, receivedAtMs: 980, committedAtMs: 985, viewedAtMs: 990 }
  activity.onQueued(changes, 995)
  const steps = [{ name: 'nft', startedAtMs: 1001, endedAtMs: 1002.5, attributes: {} }]
  activity.onSync({ view, changes: { ...changes, timeline }, startedAtMs: 1000, durationMs: 3, steps })
  const event = await until(() => reader.changes()[0])
  expect(event.data.syncs).toMatchObject([
    {
      sentence: '10.244.2.7 of default/web is no longer used',
      latencyMs: 103,
      times: {
        ...{ trigger: -100, received: -20, stored: -15, viewed: -10, arrived: -5 },
        steps: [{ name: 'nft', from: 1, to: 2.5 }],
      },
    },
  ])
})

test('of a sync that changes several Services, each has its own words, as far as comparing is cheap', async () => {
  const { view, read, sync } = await started()
  const reader = read()
  await reader.first()
  const many = Array.from({ length: 997 }, (_, index) => endpoint(`10.245.${index >> 8}.${index & 255}`))
  const both = [
    change(view, 'web', { ...web, endpoints: [endpoint('10.244.1.5')] }),
    change(view, 'api', { ...api, endpoints: many }),
    change(view, 'one-too-many', { ...api, name: 'one-too-many', endpoints: [endpoint('10.246.0.1')] }),
  ]
  sync({ ...fullSync, full: false, services: new Map(both.flatMap(({ services }) => [...services])) })
  const event = await until(() => reader.changes()[0])
  expect(event.data.syncs[0]).toMatchObject({
    sentence: '3 Services were changed',
    services: [
      { service: 'default/web', sentence: '10.244.2.7 of default/web is no longer used' },
      { service: 'default/api', sentence: 'default/api is new, with 997 endpoints' },
      { service: 'default/one-too-many', after: 1 },
    ],
  })
  expect(event.data.syncs[0]?.services[2]).not.toHaveProperty('sentence')
})
