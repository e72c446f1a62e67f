import { type Family, parseCidrs, silentLog } from '@kpng/api'
import { describe, expect, it } from 'vitest'
import { nodeAddresses, openPortal as open, steeringOf } from '../testing/open-portal.js'
import type { OpenPortal } from './capture.js'
import { nftCapture } from './nft.js'
import { elementChanges, elementsOf, holds, intervalsOf, readListing, skeleton } from './nft-ruleset.js'

const layout = { family: 'IPv4', table: 'kpng-userspace' } as const

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
      open({ address: '', port: 30_080, kind: 'nodePort', protocol: 'udp' }),
      [
        'node-ports { udp . 30080 comment "default/web:http" : 40000 }',
        'proxy-ports { udp . 40000 comment "default/web:http" }',
      ],
    ],
    [
      'no endpoint',
      open({ fates: ['refuse', 'refuse'] }),
      [
        'portals { 10.96.0.1 . tcp . 80 comment "default/web:http" : 40000 }',
        'proxy-ports { tcp . 40000 comment "default/web:http" }',
        'inside-fates { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto refuse }',
        'outside-fates { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto refuse }',
      ],
    ],
    [
      'none here, node port',
      open({ address: '', port: 30_080, kind: 'nodePort', fates: ['forward', 'drop'] }),
      [
        'node-ports { tcp . 30080 comment "default/web:http" : 40000 }',
        'proxy-ports { tcp . 40000 comment "default/web:http" }',
        'node-port-outside-fates { tcp . 30080 comment "default/web:http" : drop }',
      ],
    ],
    [
      'source ranges',
      open({ kind: 'loadBalancerIP', allowedSources: parseCidrs(['10.0.0.0/8']) }),
      [
        'portals { 10.96.0.1 . tcp . 80 comment "default/web:http" : 40000 }',
        'proxy-ports { tcp . 40000 comment "default/web:http" }',
        'guarded { 10.96.0.1 . tcp . 80 comment "default/web:http" }',
        'source-ranges { 10.96.0.1 . tcp . 80 . 10.0.0.0/8 comment "default/web:http" }',
      ],
    ],
    [
      'a name that is none',
      open({ service: 'x/y" } ; flush ruleset #', portName: '' }),
      [
        'portals { 10.96.0.1 . tcp . 80 comment "x/y______flush_ruleset__" : 40000 }',
        'proxy-ports { tcp . 40000 comment "x/y______flush_ruleset__" }',
      ],
    ],
  ])('%s', (_name, portal, expected) => expect(text(portal)).toEqual(expected))

  it('the whole range is two halves', () => {
    expect(intervalsOf(['0.0.0.0/0', '::/0'], 'IPv4')).toEqual(['0.0.0.0/1', '128.0.0.0/1'])
    expect(intervalsOf(['0.0.0.0/0', '::/0'], 'IPv6')).toEqual(['::/1', '8000::/1'])
  })
})

describe('changes', () => {
  const changes = (removed: OpenPortal[], added: OpenPortal[]) =>
    elementChanges(layout, removed.flatMap(elementsOf), added.flatMap(elementsOf))

  it('one portal whose endpoints went: two elements are written, nothing else', () => {
    const gone = open({ fates: ['refuse', 'refuse'] })
    expect(changes([open()], [gone])).toEqual([
      'add element ip kpng-userspace inside-fates { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto refuse }',
      'add element ip kpng-userspace outside-fates { 10.96.0.1 . tcp . 80 comment "default/web:http" : goto refuse }',
    ])
    expect(changes([gone], [open()])).toEqual([
      'delete element ip kpng-userspace inside-fates { 10.96.0.1 . tcp . 80 }',
      'delete element ip kpng-userspace outside-fates { 10.96.0.1 . tcp . 80 }',
    ])
    expect(changes([open()], [open()])).toEqual([])
  })

  it('an address that changes hands is deleted before it is added', () => {
    const other = open({ service: 'default/new' }, { port: 40_001 })
    expect(changes([open()], [other]).map((line) => line.replace('element ip kpng-userspace ', ''))).toEqual([
      'delete portals { 10.96.0.1 . tcp . 80 }',
      'delete proxy-ports { tcp . 40000 }',
      'add portals { 10.96.0.1 . tcp . 80 comment "default/new:http" : 40001 }',
      'add proxy-ports { tcp . 40001 comment "default/new:http" }',
    ])
  })

  it('a proxy at one address is reached there by DNAT, one on all addresses by redirect', () => {
    const targets = (family: Family, tcp?: string, udp?: string) =>
      skeleton({ ...layout, family }, { tcp, udp })
        .split('\n')
        .flatMap(
          (line) => /meta l4proto (tcp|udp) (redirect|dnat) (.*) map @portals/.exec(line)?.slice(1).join(' ') ?? [],
        )
    const key = 'ip daddr . meta l4proto . th dport'
    expect(targets('IPv4')).toEqual([
      `tcp redirect to : ${key}`,
      `udp redirect to : ${key}`,
      `tcp redirect to : ${key}`,
      `udp dnat to ip saddr : ${key}`,
    ])
    expect(targets('IPv4', undefined, '10.0.0.5')).toEqual([
      `tcp redirect to : ${key}`,
      `udp dnat to 10.0.0.5 : ${key}`,
      `tcp redirect to : ${key}`,
      `udp dnat to 10.0.0.5 : ${key}`,
    ])
    expect(targets('IPv6', 'fd00::5', 'fd00::5')[0]).toContain('tcp dnat to [fd00::5] : ip6 daddr')
  })
})

describe('a table, as nft prints it', () => {
  const listed = `table ip kpng-userspace {
	set inside {
		type ipv4_addr
		flags interval
		elements = { 10.244.0.0/24, 10.245.0.1 }
	}

	map portals {
		type ipv4_addr . inet_proto . inet_service : inet_service
		elements = { 10.96.0.1 . tcp . 80 comment "default/web:http" : 40000,
			     10.96.0.2 . tcp . 80 comment "default/shop:http" : 40001 }
	}

	set proxy-ports {
		type inet_proto . inet_service
	}

	chain refuse {
		meta l4proto tcp reject with tcp reset
	}
}
`
  it('is taken apart into rules and elements', () => {
    const { rules, elements } = readListing(listed)
    expect([...elements]).toEqual([
      'inside 10.244.0.0/24',
      'inside 10.245.0.1',
      'portals 10.96.0.1 . tcp . 80 comment "default/web:http" : 40000',
      'portals 10.96.0.2 . tcp . 80 comment "default/shop:http" : 40001',
    ])
    expect(rules).toBe(listed.replace(/\s*elements = \{[^}]*\}/g, ''))
  })

  it('holds what is expected, or more, or less', () => {
    const element = (key: string) => ({ set: 'inside', key, value: '' })
    const table = readListing('set inside {\n elements = { 10.0.0.0/8, 11.0.0.0/8 }\n}')
    expect(holds(table, [element('11.0.0.0/8'), element('10.0.0.0/8')])).toBe(true)
    expect(holds(table, [element('11.0.0.0/8')])).toBe(false)
    expect(holds(table, [element('11.0.0.0/8'), element('12.0.0.0/8')])).toBe(false)
  })
})

describe('what nft is given', () => {
  const node = nodeAddresses({ insideCidrs: ['10.244.0.0/24'] })
  const steering: typeof steeringOf = (init) => steeringOf({ node, ...init })

  it('everything at first, in one transaction per sync; then only what changed; our tables alone at the end', async () => {
    const given: string[] = []
    const capture = nftCapture({
      log: silentLog,
      run: async (program, args, input) => {
        if (args[0] !== 'list' || args[1] !== 'table') given.push(input ?? [program, ...args].join(' '))
        return 'table ip kpng-userspace\ntable inet foreign\n'
      },
    })
    await capture.steer(steering({ open: [open()], added: [open()], extent: 'full' }))
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
