import { create, fromBinary } from '@bufbuild/protobuf'
import { localv1 } from '@kpng/api'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeSet } from './item-frames.js'

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
