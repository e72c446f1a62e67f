import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { familyOf, ipSetOf, parseCidr, parseIp } from './ip.js'

describe('parseIp', () => {
  it.each([
    ['10.0.0.1', 'v4', '10.0.0.1'],
    ['255.255.255.255', 'v4', '255.255.255.255'],
    ['::', 'v6', '::'],
    ['::1', 'v6', '::1'],
    ['fd00::', 'v6', 'fd00::'],
    ['FD00:0:0::0:1', 'v6', 'fd00::1'],
    ['2001:0db8:0000:0000:0001:0000:0000:0001', 'v6', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', 'v6', '2001:db8:0:1:1:1:1:1'],
    ['1:0:0:2:0:0:0:3', 'v6', '1:0:0:2::3'],
    ['::1.2.3.4', 'v6', '::102:304'],
    ['64:ff9b::1.2.3.4', 'v6', '64:ff9b::102:304'],
    // As Go's net.ParseIP: an IPv4 address in disguise.
    ['::ffff:1.2.3.4', 'v4', '1.2.3.4'],
    ['::FFFF:0102:0304', 'v4', '1.2.3.4'],
  ])('reads %s', (text, family, canonical) => {
    expect(parseIp(text)).toEqual({ family, text: canonical })
    expect(familyOf(text)).toBe(family)
  })

  it.each(['', '010.1.1.1', '1.2.3', '1.2.3.4.5', '256.0.0.1', ' 10.0.0.1', '10.0.0.1 ', '0x7f.0.0.1', '1.2.3.4/32'])(
    'refuses %j',
    (text) => expect(parseIp(text)).toBeUndefined(),
  )

  it.each(['fe80::1%eth0', ':::', '1::2::3', '1:2:3:4:5:6:7', '12345::', '::ffff:010.1.1.1', '[::1]', 'g::'])(
    'refuses %j',
    (text) => expect(parseIp(text)).toBeUndefined(),
  )

  it('writes any IPv6 address so that it reads as itself, in the form that URL parsers use', () => {
    const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const written = groups.map((value) => value.toString(16)).join(':')
        const ip = parseIp(written)
        if (ip?.family === 'v4') return
        expect(ip?.text).toBe(new URL(`http://[${written}]`).hostname.slice(1, -1))
        expect(parseIp(ip?.text ?? '')).toEqual(ip)
      }),
    )
  })
})

describe('parseCidr', () => {
  it.each([
    ['10.0.0.0/8', 'v4', '10.0.0.0/8'],
    ['10.1.2.3/8', 'v4', '10.0.0.0/8'],
    ['10.1.2.3/32', 'v4', '10.1.2.3/32'],
    ['10.1.2.131/25', 'v4', '10.1.2.128/25'],
    ['1.2.3.4/0', 'v4', '0.0.0.0/0'],
    [' 192.168.0.0/16\t', 'v4', '192.168.0.0/16'],
    ['FD00:1::1/16', 'v6', 'fd00::/16'],
    ['::/0', 'v6', '::/0'],
    ['2001:db8::1/128', 'v6', '2001:db8::1/128'],
    ['::ffff:10.1.2.3/104', 'v4', '10.0.0.0/8'],
  ])('reads %j (checklist 45)', (text, family, canonical) => {
    expect(parseCidr(text)).toEqual({ family, text: canonical })
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
