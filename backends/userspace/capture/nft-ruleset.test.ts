import { parseCidrs } from '@kpng/api'
import { difference, elementLines, tableFamilies, tableText } from '@kpng/linux/nftables'
import { heldOfBoth, whySkipped } from '@kpng/linux/testing'
import { describe, expect, it, test } from 'vitest'
import { nodeAddresses, openPortal as open } from '../testing/open-portal.js'
import type { OpenPortal } from './capture.js'
import { nodeElements, portalElements, portalRuleset } from './nft-ruleset.js'

const unbound = { tcp: undefined, udp: undefined }
const ruleset = portalRuleset('kpng-userspace', { ip: unbound, ip6: unbound })
const bound = portalRuleset('kpng-userspace', {
  ip: { tcp: undefined, udp: '10.0.0.5' },
  ip6: { tcp: 'fd00::5', udp: 'fd00::5' },
})

describe('elements of a portal', () => {
  const text = (portal: OpenPortal) => elementLines(ruleset, portalElements([portal]))

  it.each([
    ['a cluster IP', open(), ['ip portals 10.96.0.1 . tcp . 80 : 40000', 'ip proxy-ports tcp . 40000']],
    [
      'a node port',
      open({ address: '', port: 30_080, kind: 'nodePort', protocol: 'udp' }),
      ['ip node-ports udp . 30080 : 40000', 'ip proxy-ports udp . 40000'],
    ],
    [
      'no endpoint',
      open({ fates: ['refuse', 'refuse'] }),
      [
        'ip inside-fates 10.96.0.1 . tcp . 80 : goto refuse',
        'ip outside-fates 10.96.0.1 . tcp . 80 : goto refuse',
        'ip portals 10.96.0.1 . tcp . 80 : 40000',
        'ip proxy-ports tcp . 40000',
      ],
    ],
    [
      'none here, node port',
      open({ address: '', port: 30_080, kind: 'nodePort', fates: ['forward', 'drop'] }),
      [
        'ip node-port-outside-fates tcp . 30080 : drop',
        'ip node-ports tcp . 30080 : 40000',
        'ip proxy-ports tcp . 40000',
      ],
    ],
    [
      'source ranges',
      open({ kind: 'loadBalancerIP', allowedSources: parseCidrs(['10.0.0.0/8']) }),
      [
        'ip allowed-8 10.96.0.1 . tcp . 80 . 10.0.0.0',
        'ip guarded 10.96.0.1 . tcp . 80',
        'ip portals 10.96.0.1 . tcp . 80 : 40000',
        'ip proxy-ports tcp . 40000',
      ],
    ],
    [
      'a source range with every address',
      open({ kind: 'loadBalancerIP', allowedSources: parseCidrs(['10.0.0.0/8', '0.0.0.0/0']) }),
      ['ip portals 10.96.0.1 . tcp . 80 : 40000', 'ip proxy-ports tcp . 40000'],
    ],
  ])('%s', (_name, portal, expected) => expect(text(portal)).toEqual(expected))
})

describe('changes', () => {
  const changes = (removed: OpenPortal[], added: OpenPortal[]) => {
    const { remove, add } = difference(portalElements(removed), portalElements(added))
    return [
      ...elementLines(ruleset, remove).map((line) => `- ${line}`),
      ...elementLines(ruleset, add).map((line) => `+ ${line}`),
    ]
  }

  it('one portal whose endpoints went: two elements are written, nothing else', () => {
    const gone = open({ fates: ['refuse', 'refuse'] })
    expect(changes([open()], [gone])).toEqual([
      '+ ip inside-fates 10.96.0.1 . tcp . 80 : goto refuse',
      '+ ip outside-fates 10.96.0.1 . tcp . 80 : goto refuse',
    ])
    expect(changes([open()], [open()])).toEqual([])
  })

  it('an address that changes hands gets another proxy port', () => {
    expect(changes([open()], [open({ service: 'default/new' }, { port: 40_001 })])).toEqual([
      '- ip portals 10.96.0.1 . tcp . 80 : 40000',
      '- ip proxy-ports tcp . 40000',
      '+ ip portals 10.96.0.1 . tcp . 80 : 40001',
      '+ ip proxy-ports tcp . 40001',
    ])
  })
})

it('a proxy at one address is reached there by DNAT, one on all addresses by redirect', () => {
  const targets = (family: 'ip' | 'ip6', of: typeof ruleset) =>
    tableText(family, of)
      .split('\n')
      .flatMap(
        (line) => /meta l4proto (tcp|udp) (redirect|dnat) (.*) map @portals/.exec(line)?.slice(1).join(' ') ?? [],
      )
  const key = 'ip daddr . meta l4proto . th dport'
  expect(targets('ip', ruleset)).toEqual([
    `tcp redirect to : ${key}`,
    `udp redirect to : ${key}`,
    `tcp redirect to : ${key}`,
    `udp dnat to ip saddr : ${key}`,
  ])
  expect(targets('ip', bound)).toEqual([
    `tcp redirect to : ${key}`,
    `udp dnat to 10.0.0.5 : ${key}`,
    `tcp redirect to : ${key}`,
    `udp dnat to 10.0.0.5 : ${key}`,
  ])
  expect(targets('ip6', bound)[0]).toContain('tcp dnat to [fd00::5] : ip6 daddr')
})

// Some kernels, such as 6.12.117, refuse to look up a range of a concatenation.
test.each(tableFamilies)('%s: no set has ranges in a concatenation', (family) => {
  const wrong = [...ruleset.sets[family]].filter(([, { key, interval }]) => interval && key.length > 1)
  expect(wrong).toEqual([])
})

describe.skipIf(whySkipped('the tables of portals', 'nft') !== undefined)('on a kernel', () => {
  const elements = new Map([
    ...nodeElements(nodeAddresses({ insideCidrs: ['10.244.0.0/16', 'fd44::/16'] })),
    ...portalElements([
      open({ allowedSources: parseCidrs(['10.0.0.0/8', '192.0.2.1/32']), fates: ['refuse', 'drop'] }),
      open({ address: 'fd96::1', family: 'IPv6', allowedSources: parseCidrs(['fd00::/8']) }, { port: 40_001 }),
      open({ address: '', port: 30_080, kind: 'nodePort', protocol: 'udp' }, { port: 40_002 }),
    ]),
  ])
  test.each([
    ['on all addresses', ruleset],
    ['at one address', bound],
  ])('%s: it holds the same of text and of netlink messages', async (_, of) => {
    const { ofText, ofNetlink } = await heldOfBoth(tableFamilies, of, elements)
    expect(ofNetlink).toEqual(ofText)
    expect(ofNetlink.listed).toContain('check-source')
  })
})
