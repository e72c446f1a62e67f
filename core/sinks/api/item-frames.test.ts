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
      fc.uint8Array({ maxLength: 40_000, size: 'max' }),
      (set, path, bytes) => {
        const op = create(localv1.OpItemSchema, { op: { case: 'set', value: { ref: { set, path }, bytes } } })
        const item = { set, path, message: op, encode: () => bytes }
        const framed = encodeSet(item)
        expect(framed.readUInt32BE(1)).toBe(framed.length - 5)
        expect(fromBinary(localv1.OpItemSchema, new Uint8Array(framed.subarray(5)))).toEqual(op)
      },
    ),
    { numRuns: 200 },
  )
})
