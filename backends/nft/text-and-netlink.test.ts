import { addressBytes, gotoVerdict, portBytes, protocolBytes, tableFamilies } from '@kpng/linux/nftables'
import { heldOfBoth } from '@kpng/linux/testing'
import { describe, expect, test } from 'vitest'
import { type NftOptions, settingsOf } from './options.js'
import { rememberChain } from './rules/names.js'
import { nftRuleset } from './rules/skeleton.js'
import { whyNoKernel } from './testing/namespace.js'

const cases: readonly (readonly [string, NftOptions])[] = [
  ['the default', {}],
  ['counters, another bit, everything masqueraded', { counters: true, masqueradeBit: 31, masqueradeAll: true }],
  ['a bridge', { detectLocal: { mode: 'BridgeInterface', name: 'cni0' } }],
  ['interfaces with a prefix', { detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'cali' }, dropInvalid: false }],
]

describe.skipIf(whyNoKernel() !== undefined)('the kernel holds the same of text and of netlink messages', () => {
  test.each(cases)('%s', async (_, given) => {
    const { ofText, ofNetlink } = await heldOfBoth(tableFamilies, nftRuleset(settingsOf(given)))
    expect(ofNetlink).toEqual(ofText)
    for (const each of Object.values(ofNetlink)) expect(each.split('\n').length).toBeGreaterThan(400)
  })

  // nft before 1.0.7 cannot write the rules for IPv6: their key is too long for it.
  test('a chain that remembers clients', async () => {
    const key = addressBytes('10.96.0.1') + protocolBytes('tcp') + portBytes(80)
    const elements = new Map([['ip sticky', new Map([[key, gotoVerdict(rememberChain(600))]])] as const])
    const { ofText, ofNetlink } = await heldOfBoth(['ip'], nftRuleset(settingsOf()), elements)
    expect(ofNetlink).toEqual(ofText)
    expect(ofNetlink.listed).toContain('remember-600')
  })
})
