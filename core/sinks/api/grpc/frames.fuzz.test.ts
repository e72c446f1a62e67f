import fc from 'fast-check'
import { expect, it } from 'vitest'
import { damagedBytes, fuzzing, oddBytes } from '../../../../scripts/testing/damaged.js'
import { FrameReader, frame } from './frames.js'
import { RpcError } from './status.js'

const maxMessageBytes = 1000

/** Everything that a reader finds in bytes that arrive in pieces. */
function readAll(bytes: Buffer, pieceBytes: number): { messages: Buffer[]; refused: boolean; left: number } {
  const reader = new FrameReader(maxMessageBytes)
  const messages: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    reader.push(bytes.subarray(at, at + pieceBytes))
    try {
      while (reader.ready) messages.push(Buffer.from(reader.next() ?? []))
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      return { messages, refused: true, left: reader.buffered }
    }
    expect(reader.buffered).toBeLessThanOrEqual(maxMessageBytes + 5 + pieceBytes)
  }
  return { messages, refused: false, left: reader.buffered }
}

const message = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))

it('messages come out as they went in, in whatever pieces the bytes arrive', () => {
  const arrival = fc.record({
    messages: fc.array(message, { maxLength: 6 }),
    pieceBytes: fc.integer({ min: 1, max: 50 }),
  })
  fc.assert(
    fc.property(arrival, ({ messages, pieceBytes }) => {
      const bytes = Buffer.concat(messages.map((each) => frame(each)))
      expect(readAll(bytes, pieceBytes)).toEqual({ messages, refused: false, left: 0 })
    }),
    fuzzing<{ messages: Buffer[]; pieceBytes: number }>([]),
  )
})

it('damaged bytes are read as messages, refused or waited for, the same in whatever pieces they arrive', () => {
  const good = Buffer.concat(['', 'one', 'x'.repeat(300)].map((text) => frame(Buffer.from(text))))
  const arrival = fc.record({ bytes: damagedBytes(good), pieceBytes: fc.integer({ min: 1, max: 50 }) })
  fc.assert(
    fc.property(arrival, ({ bytes, pieceBytes }) => {
      const whole = readAll(bytes, Math.max(1, bytes.length))
      const { messages, refused } = readAll(bytes, pieceBytes)
      expect({ messages, refused }).toEqual({ messages: whole.messages, refused: whole.refused })
    }),
    fuzzing(oddBytes.map((bytes) => ({ bytes, pieceBytes: 1 }))),
  )
})
