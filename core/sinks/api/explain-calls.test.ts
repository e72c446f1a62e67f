import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { kpngv1 } from '@kpng/api'
import { expect, test } from 'vitest'
import { service, syncedStore } from '../../testing/objects.js'
import { explainHandler } from './explain-calls.js'
import type { Call } from './grpc/index.js'

// The limits of one handler. client/grpc/explain.test.ts asks a whole server.

const request = create(kpngv1.ServiceRequestSchema, { namespace: 'default', name: 'web', nodeName: 'node-a' })

/** One call with these bytes as its request; resolves with the answer. */
async function ask(handler: ReturnType<typeof explainHandler>, bytes?: Uint8Array) {
  const written: Buffer[] = []
  const nextRequest = async () => bytes && Buffer.from(bytes)
  await handler({ nextRequest, write: async (frames: Buffer) => void written.push(frames) } as unknown as Call)
  const { answerJson } = fromBinary(kpngv1.ServiceReplySchema, (written[0] as Buffer).subarray(5))
  return JSON.parse(Buffer.from(answerJson).toString('utf8'))
}

function storeWithWeb() {
  const store = syncedStore()
  store.update((tx) => tx.setService(service('web')))
  return store
}

test('a program that asks all the time must wait, and others can ask later', async () => {
  let now = 0
  const handler = explainHandler({ store: storeWithWeb(), nowMs: () => now })
  const bytes = toBinary(kpngv1.ServiceRequestSchema, request)
  for (let i = 0; i < 100; i++) expect(await ask(handler, bytes)).toMatchObject({ isKnown: true })
  await expect(ask(handler, bytes)).rejects.toThrow('asked too often')
  now += 1000
  for (let i = 0; i < 20; i++) await ask(handler, bytes)
  await expect(ask(handler, bytes)).rejects.toThrow('asked too often')
})

const longName = create(kpngv1.ServiceRequestSchema, { ...request, nodeName: 'x'.repeat(300) })

test.each<[string, Uint8Array | undefined, RegExp]>([
  ['no request', undefined, /without a request/],
  ['bytes that are not a request', Buffer.from([0xff, 0xff]), /not a kpng\.v1\.ServiceRequest/],
  ['a long node name', toBinary(kpngv1.ServiceRequestSchema, longName), /nodeName is longer than 253/],
])('%s is refused', async (_, bytes, expected) => {
  await expect(ask(explainHandler({ store: storeWithWeb() }), bytes)).rejects.toThrow(expected)
})
