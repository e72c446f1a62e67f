import fc from 'fast-check'
import { expect, it } from 'vitest'
import { damagedBytes, fuzzing, oddBytes } from '../../scripts/testing/damaged.js'
import { flowIn, nameOf } from '../conntrack-messages.js'
import { acknowledgementIn, attributesOf, messagesIn } from './messages.js'

// Whatever the kernel sends, or a buffer that was too small cuts off: what is there is read, and nothing beyond it.

/** An entry of conntrack's list: a TCP flow from 10.0.0.1:1000 to 10.96.0.1:80, answered by 10.244.0.5:8080. */
const dump = Buffer.from(
  [
    ...['58000000', '00010200', '01000000', '00000000', '02000000'],
    ...['34000180', '14000180', '08000100', '0a000001', '08000200', '0a600001'],
    ...['1c000280', '05000100', '06000000', '06000200', '03e80000', '06000300', '00500000'],
    ...['08000300', '0000018e', '08000700', '00000078'],
  ].join(''),
  'hex',
)
const acknowledgement = Buffer.from(
  [
    '30000000',
    '02000002',
    '01000000',
    '00000000',
    'ffffffff',
    '14000000',
    '00000000',
    '00000000',
    '00000000',
    '00000000',
    '0a000100',
    '6e6f0000',
  ].join(''),
  'hex',
)

function readAll(bytes: Buffer): number {
  let count = 0
  for (const message of messagesIn(bytes)) {
    count++
    for (const { value } of attributesOf(message)) expect(value.length).toBeLessThanOrEqual(bytes.length)
    acknowledgementIn(message)
    for (const family of ['IPv4', 'IPv6'] as const) flowIn(message, family, 'tcp')
    nameOf(message)
  }
  return count
}

it('whole messages are found', () => {
  expect(readAll(Buffer.concat([dump, acknowledgement, dump]))).toBe(3)
})

it('damaged messages are read as far as they are whole', () => {
  const good = Buffer.concat([dump, acknowledgement, dump])
  fc.assert(
    fc.property(damagedBytes(good), (bytes) => void readAll(bytes)),
    fuzzing<Buffer>([]),
  )
})

it('any bytes', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      (bytes) => void readAll(bytes),
    ),
    fuzzing(oddBytes),
  )
})
