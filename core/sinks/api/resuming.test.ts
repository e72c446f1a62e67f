import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { bucketCountFor, digestBytes, globalv1, localv1, silentLog } from '@kpng/api'
import { type Operations, operationsOf } from '@kpng/client'
import { afterEach, describe, expect, test } from 'vitest'
import type { Store } from '../../store/index.js'
import { endpoint, node, service, syncedStore } from '../../testing/objects.js'
import { until } from '../../testing/until.js'
import { noApiCounts, serveApi } from './index.js'

// Clients that come back, over real sockets: how much they are sent.

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function serve(store: Store, address = 'tcp://127.0.0.1:0') {
  const counters = noApiCounts()
  const server = await serveApi({ store, counters, log: silentLog, listen: address })
  cleanUps.push(() => server.close(10))
  return { server, counters, address: server.address }
}

function storeOf(services: number): Store {
  const store = syncedStore()
  store.update((tx) => {
    for (let index = 0; index < services; index++) {
      tx.setService(service(`s${index}`))
      tx.setEndpoints(slice(index, '10.0.0.1'))
    }
    tx.setNode(node('node-a'))
  })
  return store
}

const slice = (index: number, ...ips: string[]) => ({
  namespace: 'default',
  name: `s${index}-1`,
  service: `s${index}`,
  endpoints: ips.map((ip, pod) => endpoint(ip, { podName: `s${index}-${pod}` })),
})

const methods = {
  local: '/localv1.Sets/Watch',
  global: '/globalv1.Sets/Watch',
} as const

const requests = {
  local: (known?: localv1.Known) =>
    toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { nodeName: 'node-a', ...(known && { known }) })),
  global: (known?: localv1.Known) =>
    toBinary(globalv1.GlobalWatchReqSchema, create(globalv1.GlobalWatchReqSchema, known && { known })),
} as const

/** A client of the library: what it was told, change set by change set, and the requests that it sent. */
function connect(api: string | string[], kind: 'local' | 'global') {
  const told: Operations[] = []
  const sent: Uint8Array[] = []
  const stop = new AbortController()
  cleanUps.push(() => stop.abort())
  const request = (known?: localv1.Known) => {
    const bytes = requests[kind](known)
    sent.push(bytes)
    return bytes
  }
  const { signal } = stop
  const operations = operationsOf({ api, method: methods[kind], request, signal, log: silentLog, errorDelayMs: 10 })
  void (async () => {
    for await (const one of operations) told.push(one)
  })()
  return { told, sent }
}

/** Forwards connections to a server, until they are cut. */
async function cable(to: string) {
  const sockets = new Set<Socket>()
  let isCut = false
  const port = Number(to.split(':').at(-1))
  const forwarder = createServer((near) => {
    if (isCut) return near.destroy()
    const far = createConnection({ port, host: '127.0.0.1' })
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
  })
  await new Promise<void>((resolve) => forwarder.listen(0, '127.0.0.1', resolve))
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  cleanUps.push(() => forwarder.close(), cut)
  return {
    address: `127.0.0.1:${(forwarder.address() as AddressInfo).port}`,
    cut,
    mend: () => {
      isCut = false
    },
  }
}

const pathsOf = ({ sets, deletes }: Operations) => [
  ...sets.map(({ ref }) => ref?.path),
  ...deletes.map(({ path }) => `-${path}`),
]

describe.each(['local', 'global'] as const)('%s: after a lost connection', (kind) => {
  test('the same server sends what changed meanwhile', async () => {
    const store = storeOf(50)
    const { server, counters, address } = await serve(store)
    const wire = await cable(address)
    const { told } = connect(wire.address, kind)
    await until('the state', () => told.length === 1)
    const { itemsSent } = counters
    wire.cut()
    await until('the client is gone', () => server.stats.calls === 0)
    store.update((tx) => tx.setEndpoints(slice(7, '10.0.0.2')))
    wire.mend()
    await until('the difference', () => told.length === 2)
    expect(told[1]?.reset).toBe(false)
    const changed =
      kind === 'local' ? ['default/s7/s7-0'] : [expect.any(String), expect.stringContaining('-default|s7|')]
    expect(pathsOf(told[1] as Operations)).toEqual(changed)
    expect(counters.itemsSent - itemsSent).toBeLessThan(30)
  })

  test('another server with the same state sends nothing', async () => {
    const [one, two] = [await serve(storeOf(50)), await serve(storeOf(50))]
    const { told, sent } = connect([one.address, two.address], kind)
    await until('the state', () => told.length === 1)
    await one.server.close(0)
    await until('the resumption', () => told.length === 2)
    expect(told[1]).toMatchObject({ reset: false, sets: [], deletes: [] })
    expect(two.counters.itemsSent).toBe(0)
    expect(Math.max(...sent.map(({ length }) => length))).toBeLessThan(100)
  })

  test('another server with another state sends the buckets that differ, and what is gone goes', async () => {
    const changed = storeOf(500)
    changed.update((tx) => {
      tx.setEndpoints(slice(7, '10.0.0.2'))
      tx.deleteService('default', 's9')
      tx.deleteEndpoints('default', 's9-1')
    })
    const [one, two] = [await serve(storeOf(500)), await serve(changed)]
    const { told } = connect([one.address, two.address], kind)
    await until('the state', () => told.length === 1)
    await one.server.close(0)
    await until('the difference', () => told.length === 2)
    expect(told[1]?.reset).toBe(false)
    const paths = pathsOf(told[1] as Operations).map((path) => path?.replaceAll('|', '/'))
    if (kind === 'local') expect(paths).toEqual(['default/s7/s7-0', '-default/s9/s9-0', '-default/s9'])
    else expect(paths).toHaveLength(4)
    expect(two.counters.itemsSent).toBeLessThan(100)
  })

  test('another server of which most is different sends everything, and what is gone goes', async () => {
    const changed = storeOf(50)
    changed.update((tx) => {
      for (let index = 0; index < 50; index++) tx.setEndpoints(slice(index, '10.0.0.2'))
      tx.deleteService('default', 's9')
      tx.deleteEndpoints('default', 's9-1')
    })
    const [one, two] = [await serve(storeOf(50)), await serve(changed)]
    const { told } = connect([one.address, two.address], kind)
    await until('the state', () => told.length === 1)
    await one.server.close(0)
    await until('the difference', () => told.length === 2)
    const { reset, deletes } = told[1] as Operations
    expect(reset).toBe(false)
    if (kind === 'local') expect(deletes.map(({ path }) => path)).toEqual(['default/s9/s9-0', 'default/s9'])
    else expect(deletes).toHaveLength(51)
  })
})

test('a client that does not say what it has is sent what clients always were', async () => {
  const { address } = await serve(storeOf(1))
  const client = new Client(address.replace('tcp://', ''), credentials.createInsecure())
  cleanUps.push(() => client.close())
  const messages: string[] = []
  const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes)
  const call = client.makeBidiStreamRequest(methods.local, asBuffer, asBuffer)
  call.on('data', (bytes: Buffer) => messages.push(bytes.toString('hex')))
  call.on('error', () => {})
  call.write(requests.local())
  await until('the state', () => messages.length === 4)
  const cases = messages.map((hex) => fromBinary(localv1.OpItemSchema, Buffer.from(hex, 'hex')).op.case)
  expect(cases).toEqual(['reset', 'set', 'set', 'sync'])
  // As Go sends them: empty messages.
  expect([messages[0], messages[3]]).toEqual(['2200', '0a00'])
})

test('the digests of all buckets fit into a request', () => {
  expect(bucketCountFor(100_000_000) * digestBytes).toBeLessThan(60 * 1024)
})
