import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { hasCapability, rightsAdvice } from './capabilities.js'

describe('capabilities', () => {
  test.each([
    ['Name:\tx\nCapEff:\t000001ffffffffff\n', true, true],
    ['CapPrm:\t0000000000000000\nCapEff:\t0000000000001000\n', true, false],
    ['CapEff:\t0000008000000000\n', false, true],
    ['CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000\n', false, false],
    ['', undefined, undefined],
  ])('in effect are read from %j', (status, netAdmin, bpf) => {
    expect(hasCapability('CAP_NET_ADMIN', status)).toBe(netAdmin)
    expect(hasCapability('CAP_BPF', status)).toBe(bpf)
  })

  const canDrop = process.getuid?.() === 0 && spawnSync('setpriv', ['--version']).status === 0

  test.skipIf(!canDrop)('of a real process are those that it has', () => {
    const dropped = ['--bounding-set=-net_admin', '--inh-caps=-net_admin', 'cat', '/proc/self/status']
    const { stdout } = spawnSync('setpriv', dropped, { encoding: 'utf8' })
    expect(hasCapability('CAP_NET_ADMIN', stdout)).toBe(false)
    expect(hasCapability('CAP_NET_RAW', stdout)).toBe(hasCapability('CAP_NET_RAW'))
    expect(hasCapability('CAP_NET_ADMIN')).toBe(
      hasCapability('CAP_NET_ADMIN', readFileSync('/proc/self/status', 'utf8')),
    )
  })

  test('the advice says which one is missing, or that none is', () => {
    expect(rightsAdvice('CAP_NET_ADMIN', 'CapEff:\t0000000000000000\n')).toBe(
      'Run kpng as root, or give it the capability CAP_NET_ADMIN.',
    )
    expect(rightsAdvice('CAP_NET_ADMIN', '')).toContain('Run kpng as root')
    expect(rightsAdvice('CAP_NET_ADMIN', 'CapEff:\t0000000000001000\n')).toContain('something else forbids it')
  })
})
