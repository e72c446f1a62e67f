import { create, toBinary } from '@bufbuild/protobuf'
import { bucketCountFor, Digest, itemHash, KpngError, localv1 } from '@kpng/api'
import { beforeEach, describe, expect, test } from 'vitest'
import { MemoryCall } from '../../core/sinks/api/testing/memory-call.js'
import { KnownState } from './known-state.js'
import { WatchCall } from './stream.js'

// What a core must not be able to do to its nodes, whatever it sends: end the process, fill its memory, or leave it with a wrong state.

type Op = localv1.OpItem['op']

const encoded = (op: Op) => toBinary(localv1.OpItemSchema, create(localv1.OpItemSchema, { op }))
const reset = (): Op => ({ case: 'reset', value: create(localv1.EmptyOpSchema) })
const sync = (value: Partial<Omit<localv1.EmptyOp, '$typeName'>> = {}): Op => ({
  case: 'sync',
  value: create(localv1.EmptyOpSchema, value as object),
})
const syncWithPosition = () => sync({ position: create(localv1.PositionSchema, { revision: 1n }) })
const set = (name: string, bytes = Buffer.from(name)): Op => ({
  case: 'set',
  value: create(localv1.ValueSchema, { ref: { set: localv1.Set.SERVICES, path: `default/${name}` }, bytes }),
})
const ask = (count: number): Op => ({ case: 'askBuckets', value: create(localv1.AskBucketsSchema, { count }) })
const resumed = (value: Partial<Omit<localv1.Resumed, '$typeName'>>) =>
  sync({ ...(syncWithPosition().value as localv1.EmptyOp), resumed: create(localv1.ResumedSchema, value) })

const request = (known?: localv1.Known) =>
  toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, known && { known }))

let known: KnownState
let wire: MemoryCall
let call: WatchCall
/** What the client sent. */
let sent: Uint8Array[]

function connect(maxChangeSetBytes?: number): void {
  wire = new MemoryCall()
  sent = []
  wire.on('asked', (bytes) => sent.push(bytes))
  call = new WatchCall(wire.stream, request, known, maxChangeSetBytes)
}

function say(...ops: Op[]): void {
  for (const op of ops) wire.emit('data', encoded(op))
}

/** The first connection: the client has two services. */
async function haveState(): Promise<void> {
  connect()
  const first = call.next()
  say(reset(), set('a'), set('b'), syncWithPosition())
  await first
  wire.cancel()
}

beforeEach(() => {
  known = new KnownState()
})

describe.each<[string, readonly Op[], RegExp]>([
  ['asks for 4,294,967,295 buckets', [ask(2 ** 32 - 1)], /asked for the digests of 4294967295 buckets/],
  ['asks for 100,000,000 buckets', [ask(100_000_000)], /buckets/],
  ['asks for one bucket more than there may be', [ask(4097)], /buckets/],
  ['asks for twice as many buckets as there may be', [ask(8192)], /buckets/],
  ['asks for no bucket', [ask(0)], /0 buckets/],
  ['asks for a number of buckets that is not a power of two', [ask(48)], /48 buckets/],
  ['asks for buckets twice', [ask(16), ask(16)], /again and again/],
  ['asks for buckets after the first change set', [syncWithPosition(), ask(16)], /again and again/],
  ['sends two change sets for one request', [syncWithPosition(), set('c'), sync()], /nobody asked for/],
  ['resumes with 3 buckets', [resumed({ bucketCount: 3, buckets: [1] })], /into 3 buckets/],
  ['resumes with 2³¹ buckets', [resumed({ bucketCount: 2 ** 31, buckets: [1] })], /buckets/],
  ['resets and resumes', [reset(), resumed({})], /does not have/],
  ['resumes to another state', [resumed({ digest: new Uint8Array(8) })], /not what the server has/],
  ['resumes with half a digest', [resumed({ digest: new Uint8Array(4) })], /not what the server has/],
])('a core that %s', (_, ops, sentence) => {
  test('is left, with a sentence', async () => {
    await haveState()
    connect()
    const answers = [call.next()]
    say(...ops)
    await answers[0]?.catch(() => {})
    const error = await call.next().catch((reason) => reason)
    expect(error).toBeInstanceOf(KpngError)
    expect(error.message).toMatch(sentence)
    expect(wire.signal.aborted).toBe(true)
    // Nothing larger than the digests of all buckets was sent.
    expect(Math.max(...sent.map(({ length }) => length))).toBeLessThan(64 * 1024)
  })
})

test.each([4096, 1])('%d buckets are answered', async (count) => {
  await haveState()
  connect()
  void call.next().catch(() => {})
  say(ask(count))
  expect(sent).toHaveLength(2)
  expect(wire.signal.aborted).toBe(false)
  expect(bucketCountFor(Number.MAX_SAFE_INTEGER)).toBe(4096)
})

test('a client that has nothing is not resumed', async () => {
  connect()
  const next = call.next()
  say(resumed({}))
  await expect(next).rejects.toThrow(/does not have/)
})

test('a wrong state after resuming is never handed on, and the next connection gets the whole state', async () => {
  await haveState()
  connect()
  const next = call.next()
  // The server believes that there is a third service.
  const digest = new Digest()
  for (const name of ['a', 'b', 'c']) digest.add(itemHash(encoded(set(name))))
  say(resumed({ bucketCount: 16, buckets: [], digest: digest.toBytes() }))
  await expect(next).rejects.toThrow(/The whole state is requested again/)
  expect(known.known.digest).toHaveLength(0)
})

test('a right state after resuming is taken', async () => {
  await haveState()
  connect()
  const next = call.next()
  const digest = new Digest()
  for (const name of ['a', 'b', 'c']) digest.add(itemHash(encoded(set(name))))
  say(set('c'), resumed({ bucketCount: 16, buckets: [], digest: digest.toBytes() }))
  expect((await next).sets).toHaveLength(1)
})

describe('a change set without an end', () => {
  const bytesOf = (op: Op) => encoded(op).length + 256
  const limit = 10 * bytesOf(set('s')) + bytesOf(sync())

  test('is taken up to the limit', async () => {
    connect(limit)
    const next = call.next()
    say(...Array.from({ length: 10 }, () => set('s')), sync())
    expect((await next).sets).toHaveLength(10)
  })

  test.each([
    ['sets', () => set('s')],
    ['resets', reset],
    ['sets of nothing', () => ({ case: undefined })],
  ] as const)('of %s ends the call one past the limit', async (_, op) => {
    connect(limit)
    const next = call.next()
    const most = Math.floor(limit / bytesOf(op()))
    say(...Array.from({ length: most }, op))
    expect(wire.signal.aborted).toBe(false)
    say(op())
    await expect(next).rejects.toThrow(`a change set of more than ${limit} bytes`)
    expect(wire.signal.aborted).toBe(true)
  })
})
