import { describe, expect, test } from 'vitest'
import { type AddressRange, formatAddress, parseAddress, parseCidr } from './address.js'
import { blockLengths, blocksOf, maskBytes } from './source-blocks.js'

const rangeOf = (text: string): AddressRange => {
  const range = parseCidr(text)
  if (!range) throw new Error(`${text} is no range.`)
  return range
}

const texts = (range: AddressRange) =>
  [...blocksOf(range)].map(({ bits, address }) => `${formatAddress(address)}/${bits}`)

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
  ])('%s', (range, blocks) => {
    expect(texts(rangeOf(range))).toEqual(blocks)
  })

  test('that is no CIDR', () => {
    const [first, last] = ['10.0.0.254', '10.0.2.1'].map((text) => parseAddress(text)?.bytes ?? '') as [string, string]
    expect(texts({ family: 'ip', first, last })).toEqual([
      ...['10.0.0.254/32', '10.0.0.255/32', '10.0.1.0/24', '10.0.2.0/32', '10.0.2.1/32'],
    ])
  })

  test('cover the range and nothing else', () => {
    const random = (below: number) => Math.floor(Math.random() * below)
    for (let times = 0; times < 300; times++) {
      const range = rangeOf(`${random(256)}.${random(256)}.${random(256)}.${random(256)}/${random(33)}`)
      let addresses = 0
      for (const { bits, address } of blocksOf(range)) {
        addresses += 2 ** (32 - bits)
        expect(address >= range.first && address <= range.last).toBe(true)
        expect([0, ...blockLengths('ip')]).toContain(bits)
      }
      const number = (bytes: string) => Buffer.from(bytes, 'latin1').readUInt32BE(0)
      expect(addresses).toBe(number(range.last) - number(range.first) + 1)
    }
  })
})

test('masks', () => {
  expect(formatAddress(maskBytes('ip', 20))).toBe('255.255.240.0')
  expect(formatAddress(maskBytes('ip6', 24))).toBe('ffff:ff00::')
  expect(blockLengths('ip')).toEqual([32, 28, 24, 20, 16, 12, 8, 4])
  expect(blockLengths('ip6')).toHaveLength(16)
})
