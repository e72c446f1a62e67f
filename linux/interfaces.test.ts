import type { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { interfaceAddresses, isLinkLocal, reachableAddresses } from './interfaces.js'

const address = (text: string, internal = false) => ({ address: text, internal }) as never

const read = (() => ({
  lo: [address('127.0.0.1', true), address('::1', true), address('10.96.0.1', true)],
  eth0: [address('172.30.0.1'), address('FD00:0:0::1'), address('fe80::1%eth0'), address('169.254.1.1')],
  down: undefined,
})) as unknown as typeof networkInterfaces

test('every address is told in canonical form, with its interface', () => {
  expect(interfaceAddresses(read).map(({ interfaceName, ip }) => `${interfaceName} ${ip}`)).toEqual([
    ...['lo 127.0.0.1', 'lo ::1', 'lo 10.96.0.1'],
    ...['eth0 172.30.0.1', 'eth0 fd00::1', 'eth0 fe80::1', 'eth0 169.254.1.1'],
  ])
  expect(interfaceAddresses(read).filter(({ isLinkLocal }) => isLinkLocal)).toEqual([
    { interfaceName: 'eth0', family: 'IPv6', ip: 'fe80::1', isInternal: false, isLinkLocal: true },
    { interfaceName: 'eth0', family: 'IPv4', ip: '169.254.1.1', isInternal: false, isLinkLocal: true },
  ])
})

test('others can reach this machine neither at the loopback interface nor at IPv6 link-local addresses', () => {
  expect(reachableAddresses(read)).toEqual(['172.30.0.1', 'fd00::1', '169.254.1.1'])
})

test.each([
  ['fe80::1', true],
  ['febf::1', true],
  ['fec0::1', false],
  ['fe8::1', false],
  ['169.254.0.1', true],
  ['169.25.4.1', false],
])('%s: link-local is %s', (ip, expected) => expect(isLinkLocal(ip)).toBe(expected))

test('this machine has a loopback address', () => {
  expect(interfaceAddresses().map(({ ip }) => ip)).toContain('127.0.0.1')
})

test('a machine that cannot be asked is an error with a sentence', () => {
  const failing = () => {
    throw new Error('uv_interface_addresses returned EMFILE')
  }
  expect(() => interfaceAddresses(failing)).toThrow('The addresses of this machine cannot be read: uv_interface')
})
