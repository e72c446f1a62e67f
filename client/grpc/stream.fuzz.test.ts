import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { KpngError, localv1 } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryCall } from '../../core/sinks/api/testing/memory-call.js'
import { damagedBytes, fuzzing, oddBytes } from '../../scripts/testing/damaged.js'
import { KnownState } from './known-state.js'
import { WatchCall } from './stream.js'

// Whatever a core sends, in whatever order: the client has a change set, or the call ends with a sentence.

const ref = { set: localv1.Set.SERVICES, path: 'default/a' }
const good = (
  [
    { op: { case: 'reset', value: {} } },
    { op: { case: 'set', value: { ref, bytes: Buffer.from('abc') } } },
    { op: { case: 'delete', value: ref } },
    { op: { case: 'askBuckets', value: { count: 16 } } },
    { op: { case: 'sync', value: { position: { revision: 3n } } } },
    { op: { case: 'sync', value: { position: {}, resumed: { bucketCount: 16, buckets: [1, 2, 15] } } } },
    { op: { case: 'sync', value: { triggers: [{ service: 'default/a', unixMs: 1n }] } } },
  ] as const
).map((message) => Buffer.from(toBinary(localv1.OpItemSchema, create(localv1.OpItemSchema, message as object))))

const aMessage = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...good) },
  { weight: 1, arbitrary: fc.constantFrom(...good).chain(damagedBytes) },
  { weight: 1, arbitrary: fc.constantFrom(...oddBytes) },
)

const request = (known?: localv1.Known) =>
  toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, known && { known }))

test('a core says anything', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(aMessage, { maxLength: 12 }), { maxLength: 4 }), async (connections) => {
      const known = new KnownState()
      for (const messages of connections) {
        const wire = new MemoryCall()
        wire.on('asked', (bytes: Uint8Array) => {
          expect(fromBinary(localv1.WatchReqSchema, bytes).known?.buckets.length ?? 0).toBeLessThanOrEqual(32 * 1024)
        })
        const call = new WatchCall(wire.stream, request, known, 3000)
        const ended = (async () => {
          for (;;) await call.next()
        })().catch((reason) => reason)
        for (const message of messages) {
          wire.emit('data', message)
          await Promise.resolve()
        }
        wire.cancel()
        const reason = await ended
        if (!(reason instanceof KpngError)) expect(String(reason)).toContain('The connection is lost')
      }
    }),
    fuzzing<Buffer[][]>([[[...good]], [good, good.toReversed()], oddBytes.map((bytes) => [bytes])]),
  )
})
