import { setImmediate as nextLoop } from 'node:timers/promises'
import { create, toBinary } from '@bufbuild/protobuf'
import { globalv1, localv1, silentLog } from '@kpng/api'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { damagedBytes, fuzzing, oddBytes } from '../../../scripts/testing/damaged.js'
import { node, service, syncedStore } from '../../testing/objects.js'
import { View } from '../../view/node-watch.js'
import { Turns } from '../../view/schedule.js'
import { noApiCounts } from './counters.js'
import { type Handler, RpcError } from './grpc/index.js'
import { MemoryCall } from './testing/memory-call.js'
import { globalWatchHandler, localWatchHandler } from './watch-calls.js'
import { watchSettings } from './watching.js'

// What a client must not be able to do to its core, whatever it sends. Lengths of messages and numbers of connections are checked below, in grpc/.

function serve() {
  const store = syncedStore()
  store.update((tx) => {
    tx.setService(service('web'))
    tx.setNode(node('node-a'))
  })
  const counters = noApiCounts()
  const view = new View(store, new Turns(1e9))
  const settings = watchSettings(view, { log: silentLog, counters, onSent: () => {} })
  return { counters, local: localWatchHandler(settings), global: globalWatchHandler(settings) }
}

type RequestInit = Parameters<typeof create<typeof localv1.WatchReqSchema>>[1]

const encoded = (init: RequestInit) => toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, init))

/** How a call ends that a client makes with these requests. Undefined: the client is served, and goes. */
async function ends(handler: Handler, requests: readonly Uint8Array[]): Promise<unknown> {
  const call = new MemoryCall()
  call.on('error', () => {})
  const ended = handler(call).then(
    () => undefined,
    (error) => error,
  )
  for (const request of requests) {
    call.ask(request)
    await nextLoop()
    await nextLoop()
  }
  call.cancel()
  const error = await ended
  return error === call.signal.reason ? undefined : error
}

describe('a request for a node', () => {
  const longest = 'n'.repeat(253)

  test.each<[string, RequestInit, RegExp | undefined]>([
    ['with the longest name', { nodeName: longest }, undefined],
    ['without a name', {}, undefined],
    ['with a name that is one longer', { nodeName: `${longest}n` }, /longer than 253/],
    ['with 64 KB of name', { nodeName: 'n'.repeat(64_000) }, /longer than 253/],
    ['with a line break in its name', { nodeName: 'node\nnode' }, /control character/],
    ['with a terminal escape in its name', { nodeName: '\u001b[2Jnode' }, /control character/],
    ['with the separator of paths in its name', { nodeName: 'a/b' }, /contains "\/"/],
    ['with 16 sets', { extraSets: Array(16).fill(localv1.Set.NODES) }, undefined],
    ['with 17 sets', { extraSets: Array(17).fill(localv1.Set.NODES) }, /17 sets/],
    ['with a digest of 8 bytes', { known: { digest: new Uint8Array(8) } }, undefined],
    ['with a digest of 7 bytes', { known: { digest: new Uint8Array(7) } }, /8 bytes, not 7/],
    ['with a digest of 60 KB', { known: { digest: new Uint8Array(60_000) } }, /8 bytes, not 60000/],
    ['with buckets that nobody asked for', { known: { buckets: new Uint8Array(60_000) } }, undefined],
  ])('%s', async (_, init, problem) => {
    const { local, counters } = serve()
    const error = await ends(local, [encoded(init)])
    if (problem === undefined) expect(error).toBeUndefined()
    else {
      expect(error).toBeInstanceOf(RpcError)
      expect((error as RpcError).message).toMatch(problem)
    }
    expect(counters.watchers.local).toBe(0)
    expect(counters.nodes.size).toBe(0)
  })
})

test('a client that names another node with each request leaves nothing behind', async () => {
  const { local, counters } = serve()
  await ends(
    local,
    Array.from({ length: 50 }, (_, index) => encoded({ nodeName: `node-${index}` })),
  )
  expect(counters.nodes.size).toBe(0)
})

test.each([
  ['nothing', 0],
  ['one bucket too few', 15 * 8],
  ['one bucket too many', 17 * 8],
  ['half a bucket', 4],
])('a client that answers the question for its 16 buckets with %s gets the whole state', async (_, bytes) => {
  const { local } = serve()
  const call = new MemoryCall()
  const answers: Buffer[] = []
  call.on('error', () => {})
  call.on('data', (answer: Buffer) => answers.push(answer))
  void local(call).catch(() => {})
  call.ask(encoded({ nodeName: 'node-a', known: { digest: new Uint8Array(8).fill(1) } }))
  while (answers.length < 1) await nextLoop()
  call.ask(encoded({ nodeName: 'node-a', known: { buckets: new Uint8Array(bytes) } }))
  // Reset, the service, Sync.
  while (answers.length < 4) await nextLoop()
  expect(answers[1]?.toString('hex')).toBe('2200')
  call.cancel()
})

const good = [
  encoded({ nodeName: 'node-a' }),
  encoded({ nodeName: 'node-a', extraSets: [localv1.Set.NODES], timeline: true, known: {} }),
  encoded({ nodeName: 'node-b', known: { digest: new Uint8Array(8), buckets: new Uint8Array(128) } }),
  toBinary(globalv1.GlobalWatchReqSchema, create(globalv1.GlobalWatchReqSchema, { extraSets: [13], known: {} })),
].map((bytes) => Buffer.from(bytes))

const aRequest = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(...good) },
  { weight: 2, arbitrary: fc.constantFrom(...good).chain(damagedBytes) },
  { weight: 1, arbitrary: fc.constantFrom(...oddBytes) },
)

test('a client says anything', async () => {
  const { local, global, counters } = serve()
  await fc.assert(
    fc.asyncProperty(fc.array(aRequest, { maxLength: 6 }), async (requests) => {
      for (const handler of [local, global]) {
        const error = await ends(handler, requests)
        if (error !== undefined) expect(error).toBeInstanceOf(RpcError)
      }
      expect(counters.nodes.size).toBe(0)
    }),
    fuzzing<Buffer[]>([good, oddBytes.slice(0, 6)]),
  )
})
