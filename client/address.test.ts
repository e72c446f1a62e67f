import { KpngError } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { formatAddress, parseAddress, parseAddresses } from './address.js'

describe('parseAddress', () => {
  it.each([
    ['tcp://127.0.0.1:12090', { kind: 'tcp', host: '127.0.0.1', port: 12090 }],
    ['tcp://localhost:0', { kind: 'tcp', host: 'localhost', port: 0 }],
    ['tcp://[::1]:80', { kind: 'tcp', host: '::1', port: 80 }],
    ['unix:///run/kpng/kpng.sock', { kind: 'unix', path: '/run/kpng/kpng.sock' }],
    ['tcp://:12090', { kind: 'tcp', host: undefined, port: 12090 }],
  ])('reads %s, and writes it back', (text, address) => {
    expect(parseAddress(text)).toEqual(address)
    expect(formatAddress(parseAddress(text))).toBe(text)
  })

  it.each([
    ['127.0.0.1:12090', 'tcp://127.0.0.1:12090'],
    ['[::1]:80', 'tcp://[::1]:80'],
    [':80', 'tcp://:80'],
    ['unix:/run/kpng.sock', 'unix:///run/kpng.sock'],
  ])('reads %s as %s', (text, same) => {
    expect(parseAddress(text)).toEqual(parseAddress(same))
  })

  it.each([
    ['http://x:1', 'write host:port'],
    ['tcp://127.0.0.1', 'write host:port'],
    ['tcp://::1:80', 'write host:port'],
    ['tcp://[nonsense]:80', 'not an IPv6 address'],
    ['tcp://a:70000', '65535'],
    ['tcp://a:80/path', 'write host:port'],
    ['unix://relative.sock', 'full path'],
    ['unix:///', 'full path'],
    [`unix:///${'x'.repeat(120)}`, 'choose a shorter one'],
  ])('refuses %s', (text, sentence) => {
    expect(() => parseAddress(text)).toThrow(sentence)
  })
})

describe('parseAddresses', () => {
  it.each([
    ['127.0.0.1:12090', ['127.0.0.1:12090']],
    [':12090', ['127.0.0.1:12090']],
    ['[::1]:12090', ['[::1]:12090']],
    ['tcp://core.kpng:12090', ['core.kpng:12090']],
    ['unix:///run/kpng/kpng.sock', ['unix:///run/kpng/kpng.sock']],
    ['a:1, b:2', ['a:1', 'b:2']],
    ['multi:///1.0.0.1:1234,1.0.0.2:1234', ['1.0.0.1:1234', '1.0.0.2:1234']],
  ])('%s', (text, expected) => {
    expect(parseAddresses(text)).toEqual(expected)
  })

  it.each(['', 'localhost', 'localhost:0', 'unix:relative', 'localhost:99999', 'http://a:1', '::1:12090'])(
    'refuses "%s"',
    (text) => {
      expect(() => parseAddresses(text)).toThrow(KpngError)
    },
  )
})
