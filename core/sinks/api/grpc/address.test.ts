import { describe, expect, it } from 'vitest'
import { formatAddress, parseAddress } from './address.js'

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
    ['127.0.0.1:12090', 'for example tcp://127.0.0.1:12090'],
    ['http://x:1', 'must start with tcp:// or unix://'],
    ['tcp://127.0.0.1', 'write it as tcp://host:port'],
    ['tcp://::1:80', 'write it as tcp://host:port'],
    ['tcp://[nonsense]:80', 'no IPv6 address'],
    ['tcp://a:70000', 'at most 65535'],
    ['tcp://a:80/path', 'write it as tcp://host:port'],
    ['unix://relative.sock', 'full path'],
    ['unix:///', 'full path'],
    [`unix:///${'x'.repeat(120)}`, 'choose a shorter one'],
  ])('refuses %s', (text, sentence) => {
    expect(() => parseAddress(text)).toThrow(sentence)
  })
})
