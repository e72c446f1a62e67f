import { type Cidr, parseCidr } from '@kpng/api'
import { describe, expect, test } from 'vitest'
import {
  addressBytes,
  addressText,
  mergeRanges,
  nextAddress,
  previousAddress,
  rangeOf,
  slotBytes,
  slotOf,
} from './element.js'

const range = (cidr: string) => rangeOf(parseCidr(cidr) as Cidr)

test.each(['10.0.0.1', '255.255.255.255', '::', 'fd00:96::1', '2001:db8:0:1::1'])('%s there and back', (ip) => {
  expect(addressText(addressBytes(ip))).toBe(ip)
  expect(addressBytes(ip)).toHaveLength(ip.includes(':') ? 16 : 4)
})

test('slots there and back', () => {
  for (const slot of [0, 1, 255, 256, 16_383]) expect(slotOf(slotBytes(slot))).toBe(slot)
})

describe('neighbours', () => {
  test.each([
    ['10.0.0.255', '10.0.1.0'],
    ['9.255.255.255', '10.0.0.0'],
    ['fd00::ffff', 'fd00::1:0'],
  ])('after %s comes %s', (ip, next) => {
    expect(addressText(nextAddress(addressBytes(ip)) ?? '')).toBe(next)
    expect(addressText(previousAddress(addressBytes(next)) ?? '')).toBe(ip)
  })

  test('none after the last, none before the first', () => {
    expect(nextAddress(addressBytes('255.255.255.255'))).toBeUndefined()
    expect(previousAddress(addressBytes('::'))).toBeUndefined()
  })
})

describe('ranges', () => {
  test.each([
    [['10.0.0.0/8', '10.1.0.0/16'], ['10.0.0.0-10.255.255.255']],
    [['10.0.0.0/25', '10.0.0.128/25'], ['10.0.0.0-10.0.0.255']],
    [
      ['10.0.1.0/24', '192.168.0.0/24', '10.0.0.0/24'],
      ['10.0.0.0-10.0.1.255', '192.168.0.0-192.168.0.255'],
    ],
    [['0.0.0.0/0', '10.0.0.0/8'], ['0.0.0.0-255.255.255.255']],
  ])('%j are %j', (cidrs, expected) => {
    const merged = mergeRanges(cidrs.map(range))
    expect(merged.map(({ first, last }) => `${addressText(first)}-${addressText(last)}`)).toEqual(expected)
  })
})
