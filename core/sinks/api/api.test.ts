import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, type ClientDuplexStream, credentials } from '@grpc/grpc-js'
import { globalv1, localv1, silentLog } from '@kpng/api'
import { afterEach, describe, expect, test } from 'vitest'
import { Store } from '../../store/index.js'
import { endpoint, node, service, syncedStore } from '../../testing/objects.js'
import { until } from '../../testing/until.js'
import { noteLeft } from './counters.js'
import { type ApiSinkOptions, noApiCounts, type Server, serveApi } from './index.js'

// The wire contract, spoken by a grpc-js client over real sockets.

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function serve(store: Store, options: Partial<ApiSinkOptions> = {}): Promise<Server> {
  const server = await serveApi({ store, log: silentLog, listen: 'tcp://127.0.0.1:0', ...options })
  cleanUps.push(() => server.close(100))
  return server
}

/** A Watch call whose answers are collected as words: `reset`, `set path`, `delete path`, `sync`. */
class Watcher {
  readonly words: string[] = []
  readonly values: localv1.Value[] = []
  readonly call: ClientDuplexStream<Uint8Array, Uint8Array>
  status: { code: number; details: string } | undefined

  constructor(server: Server, method = '/localv1.Sets/Watch') {
    const client = new Client(server.address.replace('tcp://', ''), credentials.createInsecure())
    cleanUps.push(() => client.close())
    const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes)
    this.call = client.makeBidiStreamRequest(method, asBuffer, (bytes) => bytes)
    this.call.on('data', (bytes) => this.#receive(fromBinary(localv1.OpItemSchema, bytes)))
    this.call.on('error', () => {})
    this.call.on('status', (status) => {
      this.status = status
    })
  }

  ask(nodeName: string, extraSets: localv1.Set[] = []): void {
    this.call.write(toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName, extraSets })))
  }

  askGlobal(): void {
    this.call.write(toBinary(globalv1.GlobalWatchReqSchema, create(globalv1.GlobalWatchReqSchema)))
  }

  get syncs(): number {
    return this.words.filter((word) => word.startsWith('sync')).length
  }

  /** The words of the next change set. */
  async next(): Promise<string[]> {
    const before = this.syncs
    const seen = this.words.length
    await until('a change set', () => this.syncs > before)
    return this.words.slice(seen)
  }

  #receive({ op }: localv1.OpItem): void {
    if (op.case === 'set') {
      this.values.push(op.value)
      this.words.push(`set ${op.value.ref?.path}`)
    } else if (op.case === 'delete') this.words.push(`delete ${op.value.path}`)
    else if (op.case === 'sync')
      this.words.push(['sync', ...op.value.triggers.map((t) => `${t.service}@${t.unixMs}`)].join(' '))
    else this.words.push(op.case ?? 'nothing')
  }
}

const slice = (name: string, ...endpoints: ReturnType<typeof endpoint>[]) => ({
  namespace: 'default',
  name: `${name}-1`,
  service: name,
  endpoints,
})

describe('localv1', () => {
  test('the first answer is reset, services, endpoints, sync; the next come with the next requests', async () => {
    const store = syncedStore()
    store.update((tx) => {
      tx.setService(service('a'))
      tx.setService(service('b'))
      tx.setEndpoints(slice('a', endpoint('10.0.0.1', { podName: 'a-1' }), endpoint('fd00::1', { podName: 'a-1' })))
    })
    const watcher = new Watcher(await serve(store))
    watcher.ask('node-a')
    expect(await watcher.next()).toEqual([
      'reset',
      'set default/a',
      'set default/b',
      'set default/a/a-1',
      'set default/a/a-1:v6',
      'sync',
    ])

    watcher.ask('node-a')
    const next = watcher.next()
    store.update((tx) => {
      tx.deleteService('default', 'b')
      tx.setEndpoints(
        slice('a', endpoint('10.0.0.1', { podName: 'a-1', ready: false }), endpoint('fd00::1', { podName: 'a-1' })),
        1234,
      )
    })
    // The IPv4 endpoint went, so the service says that nobody serves IPv4 any more.
    expect(await next).toEqual(['set default/a', 'delete default/a/a-1', 'delete default/b', 'sync default/a@1234'])
  })

  test('changes made while nobody asks arrive together', async () => {
    const store = syncedStore()
    const watcher = new Watcher(await serve(store))
    watcher.ask('node-a')
    expect(await watcher.next()).toEqual(['reset', 'sync'])
    for (let i = 0; i < 10; i++) store.update((tx) => tx.setService(service('a', { healthCheckNodePort: i + 1 })))
    watcher.ask('node-a')
    expect(await watcher.next()).toEqual(['set default/a', 'sync'])
  })

  test('a change that does not concern the node is not told', async () => {
    const store = syncedStore()
    store.update((tx) => tx.setService(service('a', { internalTrafficToLocal: true })))
    const watcher = new Watcher(await serve(store))
    watcher.ask('node-a')
    await watcher.next()
    watcher.ask('node-a')
    const next = watcher.next()
    store.update((tx) => tx.setEndpoints(slice('a', endpoint('10.0.0.1', { node: 'node-b', podName: 'p' }))))
    expect(await next).toEqual(['set default/a', 'sync'])
    watcher.ask('node-a')
    const after = watcher.next()
    store.update((tx) =>
      tx.setEndpoints(
        slice(
          'a',
          endpoint('10.0.0.1', { node: 'node-b', podName: 'p' }),
          endpoint('10.0.0.2', { node: 'node-c', podName: 'q' }),
        ),
      ),
    )
    store.update((tx) => tx.setService(service('late')))
    expect(await after).toEqual(['set default/late', 'sync'])
  })

  test('another node name on the same stream starts anew', async () => {
    const store = syncedStore()
    store.update((tx) => {
      tx.setService(service('a'))
      tx.setEndpoints(slice('a', endpoint('10.0.0.1', { podName: 'p', node: 'node-b' })))
    })
    const watcher = new Watcher(await serve(store))
    watcher.ask('node-a')
    await watcher.next()
    watcher.ask('node-b')
    expect((await watcher.next())[0]).toBe('reset')
    const local = watcher.values
      .filter(({ ref }) => ref?.path === 'default/a/p')
      .map(({ bytes }) => fromBinary(localv1.EndpointSchema, bytes).local)
    expect(local).toEqual([false, true])
  })

  test('nothing is said before the state is complete', async () => {
    const store = new Store()
    store.update((tx) => {
      tx.setService(service('a'))
      tx.setSynced('services', 'nodes')
    })
    const watcher = new Watcher(await serve(store))
    watcher.ask('node-a')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(watcher.words).toEqual([])
    store.update((tx) => tx.setSynced('endpoints'))
    expect(await watcher.next()).toEqual(['reset', 'set default/a', 'sync'])
  })

  test('service CIDRs and the node itself come only to those who ask for them', async () => {
    const store = syncedStore()
    store.update((tx) => {
      tx.setNode(node('node-a', 'zone-a'))
      tx.setNode(node('node-b'))
      tx.setServiceCidr(create(localv1.ServiceCIDRSchema, { name: 'kubernetes', cidrs: ['10.96.0.0/16'] }))
    })
    const server = await serve(store)
    const plain = new Watcher(server)
    plain.ask('node-a')
    expect(await plain.next()).toEqual(['reset', 'sync'])
    const knowing = new Watcher(server)
    knowing.ask('node-a', [localv1.Set.NODES, localv1.Set.SERVICE_CIDRS])
    expect(await knowing.next()).toEqual(['reset', 'set node-a', 'set kubernetes', 'sync'])
    knowing.ask('node-a', [localv1.Set.NODES, localv1.Set.SERVICE_CIDRS])
    const next = knowing.next()
    store.update((tx) => {
      tx.deleteServiceCidr('kubernetes')
      tx.setNode(node('node-a', 'zone-b'))
    })
    expect(await next).toEqual(['set node-a', 'delete kubernetes', 'sync'])
  })

  test('a request that is none is refused with its name', async () => {
    const watcher = new Watcher(await serve(syncedStore()))
    watcher.call.write(Buffer.from('ffffffff', 'hex'))
    await until('the end of the call', () => watcher.status !== undefined)
    expect(watcher.status).toMatchObject({ code: 3, details: expect.stringContaining('localv1.WatchReq') })
  })

  test('a client that has asked enough ends the call well', async () => {
    const watcher = new Watcher(await serve(syncedStore()))
    watcher.ask('node-a')
    await watcher.next()
    watcher.call.end()
    await until('the end of the call', () => watcher.status !== undefined)
    expect(watcher.status?.code).toBe(0)
  })

  test('a watcher that leaves is gone at once', async () => {
    const store = syncedStore()
    const server = await serve(store)
    const watcher = new Watcher(server)
    watcher.ask('node-a')
    await watcher.next()
    watcher.ask('node-a')
    await until('the call', () => server.stats.calls === 1)
    watcher.call.cancel()
    await until('the end of the call', () => server.stats.calls === 0)
  })

  test('a watcher that does not read delays nobody and costs little', async () => {
    const store = syncedStore()
    store.update((tx) => {
      for (let i = 0; i < 3000; i++) tx.setService(service(`s${i}`, { annotations: { text: 'x'.repeat(2000) } }))
    })
    const server = await serve(store)
    const stuck = new Watcher(server)
    stuck.call.pause()
    stuck.ask('node-a')
    await until('the stuck call', () => server.stats.calls === 1)
    const before = process.memoryUsage().rss
    const quick = new Watcher(server)
    quick.ask('node-b')
    await quick.next()
    expect(quick.words).toHaveLength(3002)
    quick.ask('node-b')
    const next = quick.next()
    store.update((tx) => tx.setService(service('new')))
    expect(await next).toEqual(['set default/new', 'sync'])
    expect(process.memoryUsage().rss - before).toBeLessThan(150e6)
    stuck.call.resume()
    await until('the slow one', () => stuck.syncs === 1)
    expect(stuck.words).toHaveLength(3002)
  })
})

describe('globalv1', () => {
  test('nodes, services, endpoints; then deletes the other way round', async () => {
    const store = syncedStore()
    store.update((tx) => {
      tx.setNode(node('node-a'))
      tx.setService(service('a'))
      tx.setEndpoints(slice('a', endpoint('10.0.0.1', { podName: 'p' })))
    })
    const watcher = new Watcher(await serve(store), '/globalv1.Sets/Watch')
    watcher.askGlobal()
    const first = await watcher.next()
    expect(first.map((word) => word.replace(/\|[0-9a-f]{10,16}$/, '|hash'))).toEqual([
      'reset',
      'set |node-a||',
      'set default|a||',
      'set default|a|a-1|hash',
      'sync',
    ])
    watcher.askGlobal()
    const next = watcher.next()
    store.update((tx) => {
      tx.deleteNode('node-a')
      tx.deleteService('default', 'a')
      tx.deleteEndpoints('default', 'a-1')
    })
    const endpointPath = first[3]?.slice(4)
    expect(await next).toEqual([`delete ${endpointPath}`, 'delete default|a||', 'delete |node-a||', 'sync'])
  })
})

test('who watches and what they are told is counted, item by item', async () => {
  const store = syncedStore()
  store.update((tx) => {
    tx.setService(service('a'))
    tx.setEndpoints(slice('a', endpoint('10.0.0.1', { podName: 'p' }), endpoint('10.0.0.2', { podName: 'q' })))
  })
  const counters = noApiCounts()
  const told: number[] = []
  const server = await serve(store, { counters, onSent: (items) => told.push(items) })
  const nodes = [new Watcher(server), new Watcher(server)] as const
  // The second is told what was encoded for the first, all in one piece.
  for (const [index, watcher] of nodes.entries()) {
    watcher.ask(`node-${index}`)
    await watcher.next()
  }
  const relay = new Watcher(server, '/globalv1.Sets/Watch')
  relay.askGlobal()
  await relay.next()
  await until('all to be counted', () => counters.changeSetsSent === 3)
  expect(counters).toMatchObject({ watchers: { local: 2, global: 1 }, changeSetsSent: 3, itemsSent: 9 })
  expect([...counters.nodes.keys()]).toEqual(['node-0', 'node-1'])
  nodes[0].ask('node-0')
  store.update((tx) => tx.deleteService('default', 'a'))
  await until('the deletes to be counted', () => counters.changeSetsSent === 4)
  expect(told).toEqual([3, 3, 3, 3])
  for (const watcher of [...nodes, relay]) watcher.call.cancel()
  await until('all to be gone', () => counters.watchers.local + counters.watchers.global === 0)
  expect(counters.nodes.size).toBe(0)
  expect([...counters.left.keys()].sort()).toEqual(['node-0', 'node-1'])
})

test('of the nodes that left, the newest 10,000 are known', () => {
  const counters = noApiCounts()
  for (let index = 0; index <= 10_000; index++) noteLeft(counters, `node-${index}`, index)
  noteLeft(counters, 'node-5', 20_000)
  expect(counters.left.size).toBe(10_000)
  expect([counters.left.has('node-0'), counters.left.get('node-1'), [...counters.left].at(-1)]).toEqual([
    ...[false, 1, ['node-5', 20_000]],
  ])
})

test('what is switched off is not served', async () => {
  const server = await serve(syncedStore(), { globalApi: false })
  const watcher = new Watcher(server, '/globalv1.Sets/Watch')
  watcher.askGlobal()
  await until('the end of the call', () => watcher.status !== undefined)
  expect(watcher.status?.code).toBe(12)
  await expect(serveApi({ store: syncedStore(), log: silentLog, localApi: false, globalApi: false })).rejects.toThrow(
    /Leave one of them on/,
  )
})

test('a thousand watchers all hear of one change', async () => {
  const store = syncedStore()
  store.update((tx) => {
    tx.setService(service('a'))
    tx.setEndpoints(slice('a', endpoint('10.0.0.1', { podName: 'p', node: 'node-7' })))
  })
  const server = await serve(store, { limits: { maxStreamsPerConnection: 2000 } })
  const watchers = Array.from({ length: 1000 }, () => new Watcher(server))
  for (const [index, watcher] of watchers.entries()) watcher.ask(`node-${index}`)
  await until('all to be synced', () => watchers.every(({ syncs }) => syncs === 1), 90_000)
  for (const [index, watcher] of watchers.entries()) watcher.ask(`node-${index}`)
  store.update((tx) => tx.setEndpoints(slice('a', endpoint('10.0.0.2', { podName: 'p', node: 'node-8' }))))
  await until('all to hear of it', () => watchers.every(({ syncs }) => syncs === 2), 90_000)
  expect(watchers.every(({ words }) => words.at(-2) === 'set default/a/p')).toBe(true)
})
