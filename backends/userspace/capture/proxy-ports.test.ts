import { describe, expect, it } from 'vitest'
import { parsePortRange, proxyPorts } from './proxy-ports.js'

describe('proxy ports', () => {
  it.each([
    ['', undefined],
    ['0', undefined],
    ['0-0', undefined],
    ['30000-30001', { base: 30_000, size: 2 }],
    ['30000+1', { base: 30_000, size: 2 }],
    ['30000', { base: 30_000, size: 1 }],
  ])('the range "%s"', (text, expected) => expect(parsePortRange(text)).toEqual(expected))

  it.each(['30001-30000', '1-70000', 'x', '-5', '0-5', '65535+1'])('the wrong range "%s"', (text) => {
    expect(() => parsePortRange(text)).toThrow(`The port range "${text}" is wrong`)
  })

  it('leaves the choice to the system without a range', () => {
    const ports = proxyPorts(undefined)
    expect([ports.allocate(), ports.allocate()]).toEqual([0, 0])
  })

  it('gives each port of the range once, and says when there is none left', () => {
    const ports = proxyPorts({ base: 40_000, size: 3 }, () => 0.5)
    expect([ports.allocate(), ports.allocate(), ports.allocate()]).toEqual([40_001, 40_002, 40_000])
    expect(() => ports.allocate()).toThrow('Every proxy port from 40000 to 40002 is used; give a larger --port-range')
    ports.release(40_002)
    expect(ports.allocate()).toBe(40_002)
  })
})
