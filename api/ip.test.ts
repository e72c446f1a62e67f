import { isIP, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  boundsOf,
  bytesOfIp,
  type Cidr,
  CidrSet,
  familyOf,
  ipOfBytes,
  ipSetOf,
  isPort,
  parseCidr,
  parseIp,
  unsafeKindOf,
} from './ip.js'

describe('parseIp', () => {
  it.each([
    ['10.0.0.1', 'IPv4', '10.0.0.1'],
    ['255.255.255.255', 'IPv4', '255.255.255.255'],
    ['::', 'IPv6', '::'],
    ['::1', 'IPv6', '::1'],
    ['fd00::', 'IPv6', 'fd00::'],
    ['FD00:0:0::0:1', 'IPv6', 'fd00::1'],
    ['2001:0db8:0000:0000:0001:0000:0000:0001', 'IPv6', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', 'IPv6', '2001:db8:0:1:1:1:1:1'],
    ['1:0:0:2:0:0:0:3', 'IPv6', '1:0:0:2::3'],
    ['::1.2.3.4', 'IPv6', '::102:304'],
    ['64:ff9b::1.2.3.4', 'IPv6', '64:ff9b::102:304'],
    // As Go's net.ParseIP: an IPv4 address in disguise.
    ['::ffff:1.2.3.4', 'IPv4', '1.2.3.4'],
    ['::FFFF:0102:0304', 'IPv4', '1.2.3.4'],
  ])('reads %s', (text, family, canonical) => {
    expect(parseIp(text)).toEqual({ family, text: canonical })
    expect(familyOf(canonical)).toBe(family)
    expect(ipOfBytes(bytesOfIp(text) ?? new Uint8Array())).toBe(canonical)
  })

  it.each(['', '010.1.1.1', '1.2.3', '1.2.3.4.5', '256.0.0.1', ' 10.0.0.1', '10.0.0.1 ', '0x7f.0.0.1', '1.2.3.4/32'])(
    'refuses %j',
    (text) => expect(parseIp(text)).toBeUndefined(),
  )

  it.each(['fe80::1%eth0', ':::', '1::2::3', '1:2:3:4:5:6:7', '12345::', '::ffff:010.1.1.1', '[::1]', 'g::'])(
    'refuses %j',
    (text) => expect(parseIp(text)).toBeUndefined(),
  )

  it('accepts the texts that Node accepts, without zones, and reads what URL parsers read', () => {
    const piece = fc.constantFrom(
      ':',
      ':',
      ':',
      '::',
      '0',
      '1',
      'fF0',
      'abcd',
      '12345',
      'g',
      '1.2.3.4',
      '1.2.3',
      '.',
      '%1',
    )
    const groups = fc.array(fc.constantFrom('0', '1', 'aBc', '9999', '1.2.3.4', ''), { minLength: 2, maxLength: 9 })
    const text = fc.oneof(
      fc.array(piece, { maxLength: 17 }).map((pieces) => pieces.join('')),
      groups.map((all) => all.join(':')),
    )
    fc.assert(
      fc.property(text, (written) => {
        const bytes = bytesOfIp(written)
        expect(bytes !== undefined).toBe(isIP(written) > 0 && !written.includes('%'))
        if (bytes && isIPv6(written)) {
          const read = bytes.length === 4 ? `::ffff:${ipOfBytes(bytes)}` : ipOfBytes(bytes)
          expect(new URL(`http://[${read}]`).hostname).toBe(new URL(`http://[${written}]`).hostname)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('writes any IPv6 address so that it reads as itself, in the form that URL parsers use', () => {
    const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const written = groups.map((value) => value.toString(16)).join(':')
        const ip = parseIp(written)
        if (ip?.family === 'IPv4') return
        expect(ip?.text).toBe(new URL(`http://[${written}]`).hostname.slice(1, -1))
        expect(parseIp(ip?.text ?? '')).toEqual(ip)
      }),
    )
  })
})

describe('parseCidr', () => {
  it.each([
    ['10.0.0.0/8', 'IPv4', '10.0.0.0/8'],
    ['10.1.2.3/8', 'IPv4', '10.0.0.0/8'],
    ['10.1.2.3/32', 'IPv4', '10.1.2.3/32'],
    ['10.1.2.131/25', 'IPv4', '10.1.2.128/25'],
    ['1.2.3.4/0', 'IPv4', '0.0.0.0/0'],
    [' 192.168.0.0/16\t', 'IPv4', '192.168.0.0/16'],
    ['FD00:1::1/16', 'IPv6', 'fd00::/16'],
    ['::/0', 'IPv6', '::/0'],
    ['2001:db8::1/128', 'IPv6', '2001:db8::1/128'],
    ['::ffff:10.1.2.3/104', 'IPv4', '10.0.0.0/8'],
  ])('reads %j (checklist 45)', (text, family, canonical) => {
    const [address, bits] = canonical.split('/')
    expect(parseCidr(text)).toEqual({ family, text: canonical, address, bits: Number(bits) })
  })

  it.each(['', '10.0.0.0', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/-1', '::/129', '010.0.0.0/8', 'fe80::%1/64', '/8'])(
    'refuses %j',
    (text) => expect(parseCidr(text)).toBeUndefined(),
  )

  it('refuses a blank inside', () => expect(parseCidr('10.0.0.0 /8')).toBeUndefined())
})

describe('ipSetOf', () => {
  it('sorts by family, drops duplicates and hands out what is no address', () => {
    const bad: string[] = []
    const set = ipSetOf(['fd00::2', '10.0.0.2', 'x', '10.0.0.1', 'FD00::2', '::ffff:10.0.0.1'], (text) =>
      bad.push(text),
    )
    expect(set).toEqual({ v4: ['10.0.0.1', '10.0.0.2'], v6: ['fd00::2'] })
    expect(bad).toEqual(['x'])
  })
})

describe('boundsOf', () => {
  it.each([
    ['10.1.2.3/8', '10.0.0.0', '10.255.255.255'],
    ['10.0.0.0/31', '10.0.0.0', '10.0.0.1'],
    ['10.0.0.7/32', '10.0.0.7', '10.0.0.7'],
    ['0.0.0.0/0', '0.0.0.0', '255.255.255.255'],
    ['2001:db8::/33', '2001:db8::', '2001:db8:7fff:ffff:ffff:ffff:ffff:ffff'],
  ])('%s is %s to %s', (text, first, last) => {
    const bounds = boundsOf(parseCidr(text) as Cidr)
    expect([ipOfBytes(bounds.first), ipOfBytes(bounds.last)]).toEqual([first, last])
  })
})

describe('CidrSet', () => {
  const setOf = (...texts: string[]) => new CidrSet(texts.map((text) => parseCidr(text) as Cidr))

  it('keeps the CIDRs that are not inside another one', () => {
    const set = setOf('10.1.0.0/16', '10.0.0.0/8', '192.168.0.0/24', 'fd00::/8', 'fd00::1/128', '10.0.0.0/8')
    expect(set.cidrs.map(({ text }) => text)).toEqual(['10.0.0.0/8', 'fd00::/8', '192.168.0.0/24'])
  })

  it('has what lies between the bounds of a CIDR, and nothing else', () => {
    const address = fc.uint8Array({ minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(address, fc.integer({ min: 0, max: 32 }), address, fc.nat(32), (network, bits, random, near) => {
        const cidr = parseCidr(`${network.join('.')}/${bits}`) as Cidr
        const { first, last } = boundsOf(cidr)
        // Mostly near the network, where the answer may be yes.
        const probe = random.map((byte, index) => (index * 8 < near ? (network[index] ?? 0) : byte))
        const isInside = Buffer.compare(probe, first) >= 0 && Buffer.compare(probe, last) <= 0
        expect(new CidrSet([cidr]).has(probe.join('.'))).toBe(isInside)
      }),
    )
  })

  it.each(['11.0.0.1', 'fe00::1', '::ffff:11.0.0.1', 'x', ''])('does not have %j', (text) =>
    expect(setOf('10.0.0.0/8', 'fd00::/8').has(text)).toBe(false),
  )

  it.each(['10.9.9.9', 'fdff::1', '::ffff:10.0.0.1'])('has %j', (text) =>
    expect(setOf('10.0.0.0/8', 'fd00::/8').has(text)).toBe(true),
  )
})

describe('unsafeKindOf', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.0.1', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['169.254.169.254', 'link-local'],
    ['fe80::1', 'link-local'],
    ['febf::1', 'link-local'],
    ['0.0.0.0', 'unspecified'],
    ['::', 'unspecified'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'multicast'],
    ['ff02::1', 'multicast'],
    ['10.0.0.1', undefined],
    ['128.0.0.1', undefined],
    ['fec0::1', undefined],
    ['fd00::1', undefined],
    ['::2', undefined],
    ['x', undefined],
  ])('%s is %s', (ip, kind) => expect(unsafeKindOf(ip)).toBe(kind))
})

it.each([1, 80, 65_535])('%j is a port', (port) => expect(isPort(port)).toBe(true))
it.each([0, 65_536, 1.5, '80', undefined])('%j is not a port', (port) => expect(isPort(port)).toBe(false))
