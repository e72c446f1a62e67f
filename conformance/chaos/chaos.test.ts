import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { served, tcpPort } from '../cases/objects.js'
import { ChaosApiServer } from './api-server.js'
import { ChaosCluster, mayReach, VisibleTime } from './cluster.js'
import { CpuWait } from './cpu-wait.js'
import { ProxyClock } from './proxy-clock.js'
import { Random } from './random.js'

describe('a seed', () => {
  const changesOf = (seed: number) => {
    const cluster = new ChaosCluster(new Random(seed))
    return Array.from({ length: 20 }, () => {
      cluster.change()
      return JSON.stringify(cluster.objects())
    })
  }

  it('makes the same changes again, and another one makes others', () => {
    expect(changesOf(7)).toEqual(changesOf(7))
    expect(changesOf(8)).not.toEqual(changesOf(7))
  })

  it('leaves every Service with an endpoint, and the first one as it is', () => {
    const cluster = new ChaosCluster(new Random(1))
    for (let i = 0; i < 200; i++) {
      cluster.change()
      for (const { current } of cluster.services) expect(current.size).toBeGreaterThan(0)
      expect([...(cluster.services[0]?.current ?? [])]).toEqual(['a1', 'b1'])
    }
  })
})

it('a server may be reached while it is an endpoint, and shortly after it left', () => {
  const service = { name: 's', number: 1, current: new Set(['a1'] as const), leftAt: new Map([['b1', 5000]] as const) }
  expect(mayReach(service, 'a1', 9000, 1000)).toBe(true)
  expect(mayReach(service, 'b1', 5900, 1000)).toBe(true)
  expect(mayReach(service, 'b1', 6100, 1000)).toBe(false)
  expect(mayReach(service, 'b2', 6100, 1000)).toBe(false)
})

it('time stands while the proxy can see nothing', () => {
  const time = new VisibleTime()
  time.pause()
  const paused = time.now()
  expect(time.now()).toBe(paused)
  time.resume()
  expect(time.now()).toBeGreaterThanOrEqual(paused)
})

it('time stands while the proxy gets no processor, also if it was restarted', () => {
  const waited = new Map([[1, 100]])
  let pid: number | undefined = 1
  const cpuWait = new CpuWait(
    () => pid,
    (it) => waited.get(it),
  )
  expect(cpuWait.ms).toBe(100)
  waited.set(1, 250)
  expect(cpuWait.ms).toBe(250)
  pid = undefined
  expect(cpuWait.ms).toBe(250)
  pid = 2
  waited.set(2, 30)
  expect(cpuWait.ms).toBe(280)
  // The kernel counts the same of this process.
  expect(new CpuWait(() => process.pid).ms).toBeGreaterThan(0)

  const standing = { ms: 0 }
  const time = new VisibleTime(standing)
  const before = time.now()
  standing.ms += 3_600_000
  expect(time.now()).toBeLessThan(before)
})

it("a proxy's clock jumps without its timers", async () => {
  const folder = mkdtempSync(join(tmpdir(), 'kpng-clock-'))
  try {
    const clock = new ProxyClock(folder)
    const program = `const start = performance.now()
      const line = () => console.log(Date.now(), new Date().getTime(), Math.round(performance.now() - start), new Date(0).getTime(), Date.parse('1970-01-01'))
      line()
      process.stdin.on('data', line)`
    const child = spawn(process.execPath, ['-e', program], { env: { ...process.env, ...clock.env } })
    const numbers = async () =>
      String((await once(child.stdout, 'data'))[0])
        .split(' ')
        .map(Number)
    const hourMs = 3_600_000
    /** Asks until the clock is so far from ours. */
    const jumped = async (offsetMs: number) => {
      clock.jumpTo(offsetMs)
      for (;;) {
        child.stdin.write('?')
        const [now = 0, made = 0, passed = 0, ...fixed] = await numbers()
        expect(fixed).toEqual([0, 0])
        expect(passed).toBeLessThan(hourMs / 2)
        expect(Math.abs(now - made)).toBeLessThan(hourMs / 2)
        if (Math.abs(now - Date.now() - offsetMs) < hourMs / 2) return
      }
    }
    await numbers()
    await jumped(48 * hourMs)
    await jumped(-48 * hourMs)
    await jumped(0)
    child.kill()
    await once(child, 'close')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

describe('the API server', () => {
  let api: ChaosApiServer
  beforeEach(async () => {
    api = await ChaosApiServer.start()
  })
  afterEach(() => api.close())

  const ask = (path: string): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port: api.port, path, agent: false }, resolve).on('error', reject)
    })
  const list = async (query = '') => {
    const text = (await (await ask(`/api/v1/services${query}`)).toArray()).join('')
    const { metadata, items } = JSON.parse(text)
    return {
      version: metadata.resourceVersion,
      names: items.map((item: { metadata: { name: string } }) => item.metadata.name),
    }
  }
  const watch = (version: string) => ask(`/api/v1/services?watch=true&resourceVersion=${version}`)
  const eventsIn = async (stream: IncomingMessage) => {
    const [chunk] = await once(stream, 'data')
    return String(chunk)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .map(({ type, object }) => [type, object.code ?? object.metadata.name])
  }
  const services = (...names: string[]) =>
    names.flatMap((name, index) => served(name, 1 + index, ['a1'], { ports: [tcpPort(80)] }))

  it('lists, and tells of what changes after the list', async () => {
    api.apply(services('one', 'two'))
    const { version, names } = await list()
    expect(names).toEqual(['one', 'two'])
    const stream = await watch(version)
    api.apply(services('one', 'three'))
    expect(await eventsIn(stream)).toEqual([
      ['DELETED', 'two'],
      ['ADDED', 'three'],
    ])
    expect((await list()).names).toEqual(['one', 'three'])
  })

  it('ends watches with 410, and refuses new ones meanwhile', async () => {
    api.apply(services('one'))
    const stream = await watch((await list()).version)
    api.startExpiring()
    expect(await eventsIn(stream)).toEqual([['ERROR', 410]])
    expect(await eventsIn(await watch((await list()).version))).toEqual([['ERROR', 410]])
    api.stopExpiring()
    expect(api.expired).toBe(2)
  })

  it('answers lists from an earlier time, from which a watch can go on', async () => {
    api.apply(services('one'))
    api.apply(services('one', 'two'))
    api.answerStaleLists(1)
    const { version, names } = await list('?resourceVersion=0')
    expect(names).toEqual([])
    expect(await eventsIn(await watch(version))).toEqual([
      ['ADDED', 'one'],
      ['ADDED', 'two'],
    ])
    expect((await list('?resourceVersion=0')).names).toEqual(['one', 'two'])
  })
})
