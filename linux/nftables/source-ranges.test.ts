import { type Cidr, parseCidr, parseCidrs } from '@kpng/api'
import { describe, expect, test } from 'vitest'
import { type AddressRange, addressBytes, addressText, rangeOf } from './element.js'
import { nodePortKey } from './field.js'
import { allowedElements, blocksOf, sourceRules } from './source-ranges.js'

const range = (text: string): AddressRange => rangeOf(parseCidr(text) as Cidr)

const texts = ({ first, last }: AddressRange) =>
  [...blocksOf(first.length === 4 ? 'ip' : 'ip6', { first, last })].map(
    ({ bits, address }) => `${addressText(address)}/${bits}`,
  )

describe('the blocks of a range', () => {
  test.each([
    ['10.0.0.0/8', ['10.0.0.0/8']],
    ['10.1.2.3/32', ['10.1.2.3/32']],
    ['0.0.0.0/0', ['0.0.0.0/0']],
    ['100.64.0.0/10', ['100.64.0.0/12', '100.80.0.0/12', '100.96.0.0/12', '100.112.0.0/12']],
    ['192.168.4.0/23', ['192.168.4.0/24', '192.168.5.0/24']],
    ['2001:db8::/32', ['2001:db8::/32']],
    ['fd00::/8', ['fd00::/8']],
    ['2001:db8::/31', ['2001:db8::/32', '2001:db9::/32']],
    ['::1/128', ['::1/128']],
  ])('%s', (cidr, blocks) => {
    expect(texts(range(cidr))).toEqual(blocks)
  })

  test('that is no CIDR', () => {
    expect(texts({ first: addressBytes('10.0.0.254'), last: addressBytes('10.0.2.1') })).toEqual([
      ...['10.0.0.254/32', '10.0.0.255/32', '10.0.1.0/24', '10.0.2.0/32', '10.0.2.1/32'],
    ])
  })

  test('cover the range and nothing else', () => {
    const random = (below: number) => Math.floor(Math.random() * below)
    for (let times = 0; times < 300; times++) {
      const some = range(`${random(256)}.${random(256)}.${random(256)}.${random(256)}/${random(33)}`)
      let addresses = 0
      for (const { bits, address } of blocksOf('ip', some)) {
        addresses += 2 ** (32 - bits)
        expect(address >= some.first && address <= some.last).toBe(true)
        expect(bits % 4).toBe(0)
      }
      const number = (bytes: string) => Buffer.from(bytes, 'latin1').readUInt32BE(0)
      expect(addresses).toBe(number(some.last) - number(some.first) + 1)
    }
  })
})

test('the rules have one lookup per length', () => {
  const texts = (family: 'ip' | 'ip6') => sourceRules(family, nodePortKey).map(({ text }) => text)
  expect(texts('ip')).toHaveLength(9)
  expect(texts('ip')[3]).toBe('meta l4proto . th dport . ip saddr & 255.255.240.0 @allowed-20 return')
  expect(texts('ip6')).toHaveLength(17)
  expect(texts('ip6')[13]).toBe('meta l4proto . th dport . ip6 saddr & ffff:ff00:: @allowed-24 return')
})

test.each([[['0.0.0.0/0']], [['10.0.0.0/8', '0.0.0.0/0']]])(
  '%j: every source may connect, so nobody is checked',
  (cidrs) => {
    expect(allowedElements('ip', 'key', parseCidrs(cidrs))).toBeUndefined()
  },
)

test('elements name the set of their length', () => {
  expect(allowedElements('ip', 'key', parseCidrs(['10.0.0.0/8', '10.1.2.3/32']), 'whole-')).toEqual([
    ['whole-allowed-8', 'key\x0a\0\0\0'],
    ['whole-allowed-32', 'key\x0a\x01\x02\x03'],
  ])
})
