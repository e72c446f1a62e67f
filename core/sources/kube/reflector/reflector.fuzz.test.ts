import { Readable } from 'node:stream'
import { silentLog } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { damagedBytes, fuzzing, oddBytes, oddTexts } from '../../../../scripts/testing/damaged.js'
import type { KubeConnection } from '../client/index.js'
import { batches } from './reflector.js'

// Whatever an API server answers: the reflector goes on until it is stopped, and hands over only what has a name.

const widget = (name: string, resourceVersion: string) => ({
  metadata: { name, namespace: 'default', resourceVersion },
})
const end = { annotations: { 'k8s.io/initial-events-end': 'true' } }
const events = [
  { type: 'ADDED', object: widget('a', '1') },
  { type: 'MODIFIED', object: widget('a', '2') },
  { type: 'DELETED', object: widget('a', '3') },
  { type: 'BOOKMARK', object: { metadata: { resourceVersion: '4' } } },
  { type: 'BOOKMARK', object: { metadata: { resourceVersion: '4', ...end } } },
  { type: 'ERROR', object: { kind: 'Status', code: 410 } },
  { type: 'ERROR', object: { kind: 'Status', code: 500, details: { retryAfterSeconds: -1 } } },
].map((event) => Buffer.from(`${JSON.stringify(event)}\n`))
const lists = [
  { kind: 'List', metadata: { resourceVersion: '5' }, items: [widget('a', '1'), widget('b', '2')] },
  { kind: 'List', metadata: { resourceVersion: '5', continue: 'more' }, items: [widget('c', '1')] },
].map((list) => Buffer.from(JSON.stringify(list)))
const good = [...events, ...lists]

const aChunk = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...good) },
  { weight: 3, arbitrary: fc.constantFrom(...good).chain(damagedBytes) },
  { weight: 1, arbitrary: fc.constantFrom(...oddBytes, ...oddTexts.map((text) => Buffer.from(text))) },
)

interface Answer {
  readonly status: number
  readonly chunks: readonly Buffer[]
}

const anAnswer: fc.Arbitrary<Answer> = fc.record({
  status: fc.constantFrom(200, 200, 200, 200, 410, 422, 429, 500, 504, 0, 99_999),
  chunks: fc.array(aChunk, { maxLength: 6 }),
})

const timing = {
  backoff: { minMs: 0, maxMs: 0 },
  shortWatchMs: 0,
  absentRecheckMs: 0,
  maxRetryAfterMs: 0,
}

test('an API server answers anything', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anAnswer, { minLength: 1, maxLength: 12 }), async (answers) => {
      const stop = new AbortController()
      const waiting = [...answers]
      const connection = {
        server: 'https://hostile',
        request: async () => {
          const answer = waiting.shift()
          if (!answer) stop.abort(new Error('the test is over'))
          const { status, chunks } = answer ?? { status: 500, chunks: [] }
          return { status, headers: {}, body: Readable.from(chunks) }
        },
      } as unknown as KubeConnection
      const resource = { group: 'example.com', version: 'v1', name: 'widgets' }
      const { signal } = stop
      for await (const batch of batches({ connection, resource, log: silentLog, signal, timing })) {
        for (const event of batch.events) {
          if (event.type === 'set') expect(event.object.metadata.name).toMatch(/./s)
          if (event.type === 'delete') expect(event.name).toMatch(/./s)
        }
      }
      expect(waiting).toEqual([])
    }),
    fuzzing<Answer[]>([
      [{ status: 200, chunks: events }],
      [
        { status: 422, chunks: [] },
        { status: 200, chunks: lists },
      ],
    ]),
  )
})
