import { silentLog } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { parseRanges } from '../address.js'
import type { OpenPortal, Steering } from './capture.js'
import { nftCapture } from './nft.js'
import { elementChanges, elementsOf, rangesOf, skeleton } from './nft-ruleset.js'

const open = (init: Partial<OpenPortal['portal']> = {}, rest: Partial<OpenPortal> = {}): OpenPortal => ({
  portal: {
    servicePort: 'default/web:http',
    kind: 'cluster-ip',
    family: 'v4',
    protocol: 'tcp',
    ip: '10.96.0.1',
    port: 80,
    sourceRanges: undefined,
    ...init,
  },
  place: { ip: '0.0.0.0', port: 40_000 },
  fates: { inside: 'forward', outside: 'forward' },
  ...rest,
})

const layout = { family: 'v4', table: 'kpng-userspace' } as const

describe('elements of a portal', () => {
  const text = (portal: OpenPortal) => elementsOf(portal).map(({ set, key, value }) => `${set} { ${key}${value} }`)

  it.each([
    [
      'a cluster IP',
      open(),
      [
        'portals { 10.96.0.1 . tcp . 80 comment "default/web:http" : 40000 }',
        'proxy-ports { tcp . 40000 comment "default/web:http" }',
      ],
    ],
    [
      'a node port',
      open({ ip: '', port: 30_080, kind: 'node-port', protocol: 'udp' }),
      [
        'node-ports { udp . 30080 comment "default/web:http" : 40000 }',
        'proxy-ports { udp . 40000 comment "default/web:http" }',
      ],
    ],
    [
      'no endpoint',
      open({}, { fates: { inside: 'refuse', outside: 'refuse' } }),
      [
        'portals { 10.96.0.1 . tcp . 80 comment "default/web:http" : 40000 }',
        'proxy-ports { tcp . 40000 comment "default/web:http" }',
        'inside-fates { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto refuse }',
        'outside-fates { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto refuse }',
      ],
    ],
    [
      'none here, node port',
      open({ ip: '', port: 30_080, kind: 'node-port' }, { fates: { inside: 'forward', outside: 'drop' } }),
      [
        'node-ports { tcp . 30080 comment "default/web:http" : 40000 }',
        'proxy-ports { tcp . 40000 comment "default/web:http" }',
        'node-port-outside-fates { tcp . 30080 comment "default/web:http" : drop }',
      ],
    ],
    [
      'source ranges',
      open({ kind: 'load-balancer-ip', sourceRanges: parseRanges(['10.0.0.0/8', '10.1.0.0/16', 'fd00::/8']) }),
      [
        'portals { 10.96.0.1 . tcp . 80 comment "default/web:http" : 40000 }',
        'proxy-ports { tcp . 40000 comment "default/web:http" }',
        'guarded { 10.96.0.1 . tcp . 80 comment "default/web:http" }',
        'source-ranges { 10.96.0.1 . tcp . 80 . 10.0.0.0/8 comment "default/web:http" }',
      ],
    ],
    [
      'a name that is none',
      open({ servicePort: 'x/y" } ; flush ruleset #' }),
      [
        'portals { 10.96.0.1 . tcp . 80 comment "x/y______flush_ruleset__" : 40000 }',
        'proxy-ports { tcp . 40000 comment "x/y______flush_ruleset__" }',
      ],
    ],
  ])('%s', (_name, portal, expected) => expect(text(portal)).toEqual(expected))

  it('the whole range is two halves', () => {
    expect(rangesOf(['0.0.0.0/0', '::/0'], 'v4')).toEqual(['0.0.0.0/1', '128.0.0.0/1'])
    expect(rangesOf(['0.0.0.0/0', '::/0'], 'v6')).toEqual(['::/1', '8000::/1'])
  })
})

describe('changes', () => {
  it('one portal whose endpoints went: two elements are written, nothing else', () => {
    const gone = open({}, { fates: { inside: 'refuse', outside: 'refuse' } })
    expect(elementChanges(layout, [open()], [gone])).toEqual([
      'add element ip kpng-userspace inside-fates { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto refuse }',
      'add element ip kpng-userspace outside-fates { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto refuse }',
    ])
    expect(elementChanges(layout, [gone], [open()])).toEqual([
      'delete element ip kpng-userspace inside-fates { 10.96.0.1 . tcp . 80 }',
      'delete element ip kpng-userspace outside-fates { 10.96.0.1 . tcp . 80 }',
    ])
    expect(elementChanges(layout, [open()], [open()])).toEqual([])
    expect(elementChanges({ ...layout, family: 'v6' }, [open()], [gone])).toEqual([])
  })

  it('an address that changes hands is deleted before it is added', () => {
    const other = open({ servicePort: 'default/new:http' }, { place: { ip: '0.0.0.0', port: 40_001 } })
    expect(
      elementChanges(layout, [open()], [other]).map((line) => line.replace('element ip kpng-userspace ', '')),
    ).toEqual([
      'delete portals { 10.96.0.1 . tcp . 80 }',
      'delete proxy-ports { tcp . 40000 }',
      'add portals { 10.96.0.1 . tcp . 80 comment "default/new:http" : 40001 }',
      'add proxy-ports { tcp . 40001 comment "default/new:http" }',
    ])
  })

  it('a proxy at one address is reached there by DNAT, one on all addresses by redirect', () => {
    const targets = (family: 'v4' | 'v6', tcp?: string, udp?: string) =>
      skeleton({ ...layout, family }, { tcp, udp })
        .split('\n')
        .flatMap(
          (line) => /meta l4proto (tcp|udp) (redirect|dnat) (.*) map @portals/.exec(line)?.slice(1).join(' ') ?? [],
        )
    const key = 'ip daddr . meta l4proto . th dport'
    expect(targets('v4')).toEqual([
      `tcp redirect to : ${key}`,
      `udp redirect to : ${key}`,
      `tcp redirect to : ${key}`,
      `udp dnat to ip saddr : ${key}`,
    ])
    expect(targets('v4', undefined, '10.0.0.5')).toEqual([
      `tcp redirect to : ${key}`,
      `udp dnat to 10.0.0.5 : ${key}`,
      `tcp redirect to : ${key}`,
      `udp dnat to 10.0.0.5 : ${key}`,
    ])
    expect(targets('v6', 'fd00::5', 'fd00::5')[0]).toContain('tcp dnat to [fd00::5] : ip6 daddr')
  })
})

describe('what nft is given', () => {
  const steering = (rest: Partial<Steering>): Steering => ({
    open: [],
    added: [],
    removed: [],
    full: false,
    insideCidrs: ['10.244.0.0/24'],
    nodeIps: { v4: undefined, v6: undefined },
    ...rest,
  })

  it('everything at first, in one transaction a sync; then only what changed; our tables alone at the end', async () => {
    const given: string[] = []
    const capture = nftCapture({
      log: silentLog,
      run: async (program, args, input) => {
        given.push(input ?? [program, ...args].join(' '))
        return 'table ip kpng-userspace\ntable inet foreign\n'
      },
    })
    await capture.steer(steering({ open: [open()], added: [open()], full: true }))
    expect(given).toHaveLength(1)
    for (const family of ['ip', 'ip6']) {
      expect(given[0]).toContain(
        `add table ${family} kpng-userspace\ndelete table ${family} kpng-userspace\ntable ${family} kpng-userspace {`,
      )
    }
    expect(given[0]).toContain('add element ip kpng-userspace inside { 10.244.0.0/24 }')
    await capture.steer(steering({ open: [open()], added: [open()], removed: [open()] }))
    expect(given).toHaveLength(1)
    await capture.steer(steering({ removed: [open()] }))
    expect(given[1]).toBe(
      'delete element ip kpng-userspace portals { 10.96.0.1 . tcp . 80 }\ndelete element ip kpng-userspace proxy-ports { tcp . 40000 }\n',
    )
    await capture.cleanup()
    expect(given.slice(2)).toEqual(['nft list tables', 'delete table ip kpng-userspace\n'])
  })

  it('refuses to lead packets to loopback', () => {
    expect(() => nftCapture({ log: silentLog, bindAddresses: ['127.0.0.1'] })).toThrow(
      'Portals cannot lead to 127.0.0.1',
    )
    expect(() => nftCapture({ log: silentLog, bindAddresses: ['eth0'] })).toThrow(
      'The bind address "eth0" is not an IP address',
    )
  })
})
