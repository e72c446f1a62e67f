import { describe, expect, it } from 'vitest'
import { hostPort, parseCidr, parseIp, parseRanges } from './address.js'
import { refusalOf } from './refused-address.js'

describe('addresses', () => {
  it.each([
    ['10.0.0.1', { ip: '10.0.0.1', family: 'v4' }],
    ['FD00:0::1', { ip: 'fd00::1', family: 'v6' }],
    ['010.1.1.1', undefined],
    ['fe80::1%eth0', undefined],
    ['10.0.0.1; drop', undefined],
    ['', undefined],
    ['None', undefined],
  ])('%s', (text, expected) => expect(parseIp(text)).toEqual(expected))

  it.each([
    [' 10.0.0.0/8 ', { ip: '10.0.0.0', family: 'v4', prefix: 8 }],
    ['fd00::/64', { ip: 'fd00::', family: 'v6', prefix: 64 }],
    ['10.0.0.0/33', undefined],
    ['10.0.0.0', undefined],
    ['10.0.0.0/8/8', undefined],
    ['10.0.0.0/-1', undefined],
  ])('range %s', (text, expected) => expect(parseCidr(text)).toEqual(expected))

  it('keeps only the outermost of nested ranges', () => {
    const bad: string[] = []
    const ranges = parseRanges(['10.1.0.0/16', '10.0.0.0/8', '192.0.2.0/24', 'nonsense'], (text) => bad.push(text))
    expect(ranges.cidrs).toEqual(['10.0.0.0/8', '192.0.2.0/24'])
    expect(bad).toEqual(['nonsense'])
    expect([ranges.has('10.200.0.1', 'v4'), ranges.has('11.0.0.1', 'v4'), ranges.has('fd00::1', 'v6')]).toEqual([
      true,
      false,
      false,
    ])
  })

  it('writes addresses with ports', () => {
    expect([hostPort('10.0.0.1', 80), hostPort('fd00::1', 80)]).toEqual(['10.0.0.1:80', '[fd00::1]:80'])
  })
})

describe('endpoint addresses that are never connected to', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.0.1', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['169.254.169.254', 'link-local'],
    ['::ffff:169.254.169.254', 'link-local'],
    ['fe80::1', 'link-local'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['::', 'unspecified'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'multicast'],
    ['ff02::1', 'multicast'],
    ['10.244.0.5', undefined],
    ['fd44::5', undefined],
  ])('%s: %s', (text, expected) => {
    const { ip, family } = parseIp(text) as { ip: string; family: 'v4' | 'v6' }
    expect(refusalOf(ip, family, false)).toBe(expected)
    expect(refusalOf(ip, family, true)).toBe(expected === 'loopback' ? undefined : expected)
  })
})
