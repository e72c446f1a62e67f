import { describe, expect, test } from 'vitest'
import {
  contains,
  everyAddress,
  formatAddress,
  mergeRanges,
  nextAddress,
  parseAddress,
  parseCidr,
  previousAddress,
} from './address.js'

const text = (address: string) => formatAddress(parseAddress(address)?.bytes ?? '')
const cidr = (value: string) => {
  const range = parseCidr(value)
  return range && `${formatAddress(range.first)}-${formatAddress(range.last)}`
}

describe('addresses', () => {
  test.each([
    ['10.0.0.1', '10.0.0.1'],
    ['255.255.255.255', '255.255.255.255'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:db8:0:1:0:0:0:1', '2001:db8:0:1::1'],
    ['2001:0:0:1:0:0:1:1', '2001::1:0:0:1:1'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['1:0:3:4:5:6:7:8', '1:0:3:4:5:6:7:8'],
    ['::ffff:1.2.3.4', '::ffff:102:304'],
    ['10:0:0:20:0:0:0:30', '10:0:0:20::30'],
  ])('%s is %s', (given, expected) => expect(text(given)).toBe(expected))

  test.each([
    '',
    '10.0.0',
    '10.0.0.256',
    '010.1.1.1',
    '10.0.0.1 ',
    '1.2.3.4.5',
    '10..0.1',
    '.1.2.3',
    '::1%eth0',
    'fe80::1::2',
    'web',
  ])('"%s" is none', (given) => expect(parseAddress(given)).toBeUndefined())
})

describe('ranges', () => {
  test.each([
    ['10.1.2.3/8', '10.0.0.0-10.255.255.255'],
    [' 10.0.0.0/31 ', '10.0.0.0-10.0.0.1'],
    ['10.0.0.7/32', '10.0.0.7-10.0.0.7'],
    ['0.0.0.0/0', '0.0.0.0-255.255.255.255'],
    ['2001:db8::/33', '2001:db8::-2001:db8:7fff:ffff:ffff:ffff:ffff:ffff'],
  ])('%s', (given, expected) => expect(cidr(given)).toBe(expected))

  test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/-1', '10.0.0.0/8/8', '::/129', 'x/8'])(
    '"%s" is none',
    (given) => expect(parseCidr(given)).toBeUndefined(),
  )

  test('overlapping and adjacent ones become one', () => {
    const ranges = ['10.0.1.0/24', '10.0.0.0/24', '10.0.0.128/25', '10.0.3.0/24', '255.255.255.0/24'].flatMap(
      (value) => parseCidr(value) ?? [],
    )
    expect(mergeRanges(ranges).map(({ first, last }) => `${formatAddress(first)}-${formatAddress(last)}`)).toEqual([
      '10.0.0.0-10.0.1.255',
      '10.0.3.0-10.0.3.255',
      '255.255.255.0-255.255.255.255',
    ])
  })

  test('neighbours', () => {
    const bytes = (value: string) => parseAddress(value)?.bytes ?? ''
    expect(nextAddress(bytes('10.0.0.255'))).toBe(bytes('10.0.1.0'))
    expect(previousAddress(bytes('10.0.1.0'))).toBe(bytes('10.0.0.255'))
    expect(nextAddress(everyAddress('ip6').last)).toBeUndefined()
    expect(previousAddress(everyAddress('ip').first)).toBeUndefined()
    expect(contains(everyAddress('ip'), bytes('::1'))).toBe(false)
  })
})
