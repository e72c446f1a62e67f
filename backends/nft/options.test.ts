import { silentLog } from '@kpng/api'
import { usableFamilies } from '@kpng/linux/nftables'
import { describe, expect, test } from 'vitest'
import { settingsOf } from './options.js'

describe('options are checked at the door', () => {
  test.each([
    [{ masqueradeBit: 32 }, /masqueradeBit 32/],
    [{ nodePortAddresses: ['10.0.0.0'] }, /"10.0.0.0" in nodePortAddresses/],
    [{ detectLocal: { mode: 'ClusterCIDR', cidrs: ['pods'] } }, /"pods" in detectLocal.cidrs/],
    [{ detectLocal: { mode: 'BridgeInterface', name: 'a"; drop' } }, /not an interface name for BridgeInterface/],
    [{ detectLocal: { mode: 'InterfaceNamePrefix', prefix: '' } }, /not an interface name for InterfaceNamePrefix/],
    [{ tableName: 'filter' }, /"filter" is not a name for kpng's tables/],
    [{ tableName: 'kpng-a b' }, /is not a name/],
    [{ tableName: 'kpng-userspace' }, /is not a name/],
    [{ tableName: 'kpng-ipvs-edge' }, /is not a name/],
  ] as const)('%j', (options, message) => expect(() => settingsOf(options)).toThrow(message))
})

describe('the machine', () => {
  test('a host without IPv6 serves IPv4, and says so once (50)', () => {
    const said: string[] = []
    const log = { ...silentLog, info: (message: string) => said.push(message) }
    expect(usableFamilies('auto', log, false)).toEqual(['ip'])
    expect(said).toEqual(['This host has no IPv6; only IPv4 is served'])
    expect(usableFamilies('auto', log, true)).toEqual(['ip', 'ip6'])
    expect(() => usableFamilies(true, log, false)).toThrow(/host has none/)
  })
})
