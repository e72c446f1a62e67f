import { create, fromBinary } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { largeService } from '../../testing/large-service.js'
import { service, syncedStore } from '../../testing/objects.js'
import { View, type Watch } from '../../view/index.js'
import type { ChangeSet } from './change-set.js'
import { ClusterItems } from './cluster-watch.js'
import { KeptLog } from './grpc/testing/server.js'
import { encodeSet, ItemFrames } from './item-frames.js'
import { NodeItems } from './node-items.js'

test('a set item is encoded as the contract says', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(localv1.Set.SERVICES, localv1.Set.ENDPOINTS, localv1.Set.GLOBAL_ENDPOINT_INFOS),
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.constantFrom(0, 1, 100, 127, 128, 16_383, 16_384, 40_000).map((length) => new Uint8Array(length).fill(7)),
      (set, path, bytes) => {
        const op = create(localv1.OpItemSchema, { op: { case: 'set', value: { ref: { set, path }, bytes } } })
        const item = { set, path, message: op, encode: () => bytes }
        const framed = encodeSet(item)
        expect(framed.readUInt32BE(1)).toBe(framed.length - 5)
        const decoded = fromBinary(localv1.OpItemSchema, framed.subarray(5)).op
        expect(decoded.case === 'set' && decoded.value.ref).toMatchObject({ set, path })
        expect(decoded.case === 'set' && Buffer.compare(decoded.value.bytes, bytes)).toBe(0)
      },
    ),
    { numRuns: 200 },
  )
})

/** What a watcher is told next, as words. */
function told(watch: Watch<ChangeSet>, frames: ItemFrames): string[] {
  const changeSet = watch.poll()
  if (!changeSet) return []
  return [...frames.of(changeSet)].flatMap(({ bytes, items }) => {
    const words = wordsOf(bytes)
    expect(words.filter((word) => /^(set|delete) /.test(word))).toHaveLength(items)
    return words
  })
}

function wordsOf(bytes: Buffer): string[] {
  const words: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1)
    const { op } = fromBinary(localv1.OpItemSchema, bytes.subarray(at + 5, end))
    if (op.case === 'set') words.push(`set ${op.value.ref?.path}`)
    else words.push(op.case === 'delete' ? `delete ${op.value.path}` : String(op.case))
    at = end
  }
  return words
}

test('what is large goes to all watchers in the same pieces, apart from what is their own', () => {
  const store = syncedStore()
  largeService(store, { endpoints: 5000 })
  const nodes = new NodeItems(new View(store))
  const frames = new ItemFrames(new KeptLog())
  const piecesFor = (nodeName: string) => {
    const changeSet = nodes.watch({ nodeName }).poll() as ChangeSet
    const pieces = [...frames.of(changeSet)]
    const expected = [...changeSet.sets].map(({ path }) => `set ${path}`)
    expect(pieces.flatMap(({ bytes }) => wordsOf(bytes))).toEqual(['reset', ...expected, 'sync'])
    expect(pieces.reduce((sum, { items }) => sum + items, 0)).toBe(5001)
    return pieces.map(({ bytes }) => bytes)
  }
  const [first, second, own] = ['elsewhere', 'nowhere', 'node-2500'].map(piecesFor) as [Buffer[], Buffer[], Buffer[]]
  const large = first.filter(({ length }) => length >= 24 * 1024)
  expect(large.length).toBeGreaterThan(2)
  // The very same memory: a client that does not read costs no copy of it.
  const isIn = (pieces: Buffer[]) => (bytes: Buffer) =>
    pieces.some(
      ({ buffer, byteOffset, length }) =>
        buffer === bytes.buffer && byteOffset === bytes.byteOffset && length === bytes.length,
    )
  expect(large.filter(isIn(second))).toHaveLength(large.length)
  expect(large.filter(isIn(own))).toHaveLength(large.length - 1)
})

test('a change goes to all watchers that are told the same in the same bytes, and to nobody else', () => {
  const store = syncedStore()
  const nodes = new NodeItems(new View(store))
  const frames = new ItemFrames(new KeptLog())
  const watches = ['node-1', 'node-2', 'node-3'].map((nodeName) => nodes.watch({ nodeName }))
  for (const watch of watches) watch.poll()
  store.update((tx) => tx.setService(service('a')))
  const changeSets = watches.map((watch) => watch.poll() as ChangeSet)
  const { revision } = store
  const pieces = [{}, {}, { revision }].map((options, index) => [...frames.of(changeSets[index] as ChangeSet, options)])
  const [first, second, third] = pieces.map(([piece]) => piece?.bytes as Buffer) as [Buffer, Buffer, Buffer]
  expect(second).toBe(first)
  expect(third.length).toBeGreaterThan(first.length)
  store.update((tx) => tx.setService(service('b')))
  expect(told(watches[0] as Watch<ChangeSet>, frames)).toEqual(['set default/b', 'sync'])
})

test.each([
  ['a node', (view) => new NodeItems(view).watch({ nodeName: 'node-1' }), 'default/odd', 'default/good'],
  ['a relay', (view) => new ClusterItems(view).watch(), 'default|odd||', 'default|good||'],
] as const satisfies readonly (readonly [string, (view: View) => Watch<ChangeSet>, string, string])[])(
  'an item that cannot be encoded is left out and said once, and %s is told everything else',
  (_, watch, odd, good) => {
    const store = syncedStore()
    const affinity = create(localv1.ClientIPAffinitySchema, { timeoutSeconds: 3_000_000_000 })
    store.update((transaction) => {
      transaction.setService(service('odd', { sessionAffinity: { case: 'clientIp', value: affinity } }))
      transaction.setService(service('good'))
    })
    const log = new KeptLog()
    const frames = new ItemFrames(log)
    const view = new View(store)
    const whole = ['reset', `set ${good}`, 'sync']
    expect(told(watch(view), frames)).toEqual(whole)
    expect(told(watch(view), frames)).toEqual(whole)
    expect(log.lines).toEqual([expect.stringContaining(odd)])
    expect(log.lines[0]).toContain('invalid int32: 3000000000')
  },
)
