import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { served, tcpPort } from '../cases/objects.js'
import { ChaosApiServer } from './api-server.js'
import { ChaosCluster, mayReach, VisibleTime } from './cluster.js'
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
