import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FrameReader, frame } from './frames.js'
import { RpcError, Status } from './status.js'

const readAll = (reader: FrameReader) => {
  const messages: Buffer[] = []
  for (let message = reader.next(); message !== undefined; message = reader.next()) messages.push(message)
  return messages
}

const codeOf = (act: () => unknown) => {
  try {
    act()
  } catch (error) {
    return error instanceof RpcError ? error.code : error
  }
  return undefined
}

describe('frame', () => {
  it('puts five bytes before the message', () => {
    expect(frame(Buffer.from('hey')).toString('hex')).toBe('0000000003686579')
    expect(frame(new Uint8Array()).toString('hex')).toBe('0000000000')
  })
})

describe('FrameReader', () => {
  it('gives back the messages, however the bytes were cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 60 }),
        (messages, cuts) => {
          const wire = Buffer.concat(messages.map(frame))
          const reader = new FrameReader(40)
          const found: Buffer[] = []
          for (let at = 0, turn = 0; at < wire.length; turn++) {
            const length = cuts[turn % cuts.length] ?? 1
            reader.push(wire.subarray(at, at + length))
            at += length
            const before = found.length
            const { ready } = reader
            found.push(...readAll(reader))
            expect(ready).toBe(found.length > before)
          }
          expect(found.map((message) => message.toString('hex'))).toEqual(
            messages.map((message) => Buffer.from(message).toString('hex')),
          )
          expect(reader.buffered).toBe(0)
        },
      ),
    )
  })

  it('refuses a message that is too large as soon as its header is there', () => {
    const reader = new FrameReader(10)
    reader.push(frame(Buffer.alloc(10)))
    expect(reader.next()).toHaveLength(10)
    reader.push(frame(Buffer.alloc(11)).subarray(0, 5))
    expect(reader.ready).toBe(true)
    expect(codeOf(() => reader.next())).toBe(Status.RESOURCE_EXHAUSTED)
    expect(() => reader.next()).toThrow('has 11 bytes, more than the 10')
  })

  it('refuses a compressed message', () => {
    const reader = new FrameReader(10)
    reader.push(Buffer.from([1, 0, 0, 0, 9]))
    expect(reader.ready).toBe(true)
    expect(codeOf(() => reader.next())).toBe(Status.UNIMPLEMENTED)
  })

  it('does not copy a message that came in one piece', () => {
    const reader = new FrameReader(10)
    const wire = frame(Buffer.from('one'))
    reader.push(wire)
    expect(reader.next()?.buffer).toBe(wire.buffer)
  })
})
