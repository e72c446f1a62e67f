import { tableFamilies as families, rulesetVersion, type TableFamily, tableText } from '@kpng/linux/nftables'
import { describe, expect, test } from 'vitest'
import { settingsOf } from '../options.js'
import { drawsOf } from './draw.js'
import { counterSets, listKinds, setShapes, setsIn } from './names.js'
import { chainsOf, nftRuleset, type RuleSettings, rememberRules } from './skeleton.js'

const skeletonText = (family: TableFamily, given: RuleSettings) => tableText(family, nftRuleset(given))
const skeletonVersion = (family: TableFamily, given: RuleSettings) => rulesetVersion(family, nftRuleset(given))

const settings = settingsOf({ detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } })

/** The chains of a table as nft reads them, without those that draw. */
const dispatch = (text: string): string =>
  text
    .split(/(?=^ {2}chain )/m)
    .filter((part) => part.startsWith('  chain ') && !part.startsWith('  chain draw-'))
    .join('')

describe('the rules', () => {
  test('ip', () => {
    expect(dispatch(skeletonText('ip', settings))).toMatchInlineSnapshot(`
      "  chain refuse {
          meta l4proto tcp reject with tcp reset
          reject
        }
        chain check-source {
          ip daddr . meta l4proto . th dport . ip saddr @allowed-32 return
          ip daddr . meta l4proto . th dport . ip saddr & 255.255.255.240 @allowed-28 return
          ip daddr . meta l4proto . th dport . ip saddr & 255.255.255.0 @allowed-24 return
          ip daddr . meta l4proto . th dport . ip saddr & 255.255.240.0 @allowed-20 return
          ip daddr . meta l4proto . th dport . ip saddr & 255.255.0.0 @allowed-16 return
          ip daddr . meta l4proto . th dport . ip saddr & 255.240.0.0 @allowed-12 return
          ip daddr . meta l4proto . th dport . ip saddr & 255.0.0.0 @allowed-8 return
          ip daddr . meta l4proto . th dport . ip saddr & 240.0.0.0 @allowed-4 return
          drop
        }
        chain no-address-endpoint {
          ip daddr @dropped-addresses drop
          goto refuse
        }
        chain no-node-port-endpoint {
          meta l4proto . th dport @dropped-node-ports drop
          goto refuse
        }
        chain no-endpoint {
          ip daddr . meta l4proto . th dport @dropped drop
          goto refuse
        }
        chain to-all-of-node-port {
          jump draw-node-port-4
          goto no-node-port-endpoint
        }
        chain to-local-node-port {
          ip saddr @pods goto to-all-of-node-port
          fib saddr type local meta mark set meta mark | 0x4000 goto to-all-of-node-port
          jump draw-local-node-port-4
          goto no-node-port-endpoint
        }
        chain to-node-port {
          meta l4proto . th dport @external-node-ports meta mark set meta mark | 0x4000 goto to-all-of-node-port
          meta l4proto . th dport @local-node-ports goto to-local-node-port
        }
        chain to-all-of-address {
          jump draw-address-16
          goto no-address-endpoint
        }
        chain to-local-address {
          ip saddr @pods goto to-all-of-address
          fib saddr type local meta mark set meta mark | 0x4000 goto to-all-of-address
          jump draw-local-address-16
          goto no-address-endpoint
        }
        chain to-external-address {
          meta mark set meta mark | 0x4000
          goto to-all-of-address
        }
        chain to-whole-cluster-ip {
          ip saddr != @unmasqueraded meta mark set meta mark | 0x4000
          goto to-all-of-address
        }
        chain to-all {
          jump draw-4
          goto no-endpoint
        }
        chain to-local-service {
          ip daddr . meta l4proto . th dport @firewalled jump check-source
          ip saddr @pods goto to-all
          fib saddr type local meta mark set meta mark | 0x4000 goto to-all
          jump draw-local-4
          goto no-endpoint
        }
        chain to-external-service {
          ip daddr . meta l4proto . th dport @firewalled jump check-source
          meta mark set meta mark | 0x4000
          goto to-all
        }
        chain to-cluster-ip {
          ip saddr != @unmasqueraded meta mark set meta mark | 0x4000
          goto to-all
        }
        chain services {
          ip daddr @cluster-ips goto to-cluster-ip
          ip daddr . meta l4proto . th dport @external-services goto to-external-service
          ip daddr . meta l4proto . th dport @local-services goto to-local-service
          ip daddr @whole-cluster-ips goto to-whole-cluster-ip
          ip daddr @external-addresses goto to-external-address
          ip daddr @local-addresses goto to-local-address
          fib daddr type local ip daddr @node-port-addresses ip daddr != 127.0.0.0/8 goto to-node-port
        }
        chain remember {
          meta l4proto tcp ct original ip daddr . meta l4proto . ct original proto-dst vmap @sticky
          meta l4proto tcp ct original ip daddr @node-port-addresses meta l4proto . ct original proto-dst vmap @sticky-node-ports
          meta l4proto udp ct original ip daddr . meta l4proto . ct original proto-dst vmap @sticky
          meta l4proto udp ct original ip daddr @node-port-addresses meta l4proto . ct original proto-dst vmap @sticky-node-ports
          meta l4proto sctp ct original ip daddr . meta l4proto . ct original proto-dst vmap @sticky
          meta l4proto sctp ct original ip daddr @node-port-addresses meta l4proto . ct original proto-dst vmap @sticky-node-ports
        }
        chain dnat-prerouting {
          type nat hook prerouting priority -100; policy accept;
          jump services
        }
        chain dnat-output {
          type nat hook output priority -100; policy accept;
          jump services
        }
        chain late-prerouting {
          type nat hook prerouting priority -90; policy accept;
          ip daddr @service-cidrs drop
        }
        chain late-output {
          type nat hook output priority -90; policy accept;
          ip daddr @service-cidrs drop
        }
        chain snat-input {
          type nat hook input priority 100; policy accept;
          ct status dnat jump remember
        }
        chain remember-postrouting {
          type nat hook postrouting priority 90; policy accept;
          ct status dnat jump remember
        }
        chain snat-postrouting {
          type nat hook postrouting priority 100; policy accept;
          meta mark & 0x4000 == 0x4000 meta mark set meta mark ^ 0x4000 masquerade fully-random
          ct status dnat ip saddr . ip daddr @hairpin masquerade fully-random
        }
        chain filter-forward {
          type filter hook forward priority 0; policy accept;
          meta l4proto tcp ct state invalid drop
        }
      }
      "
    `)
  })

  test('a chain that draws', () => {
    const chains = new Map(chainsOf('ip6', settings).map(({ name, rules }) => [name, rules.map(({ text }) => text)]))
    expect(chains.get('draw-4')).toEqual([
      'dnat ip6 to ip6 saddr . ip6 daddr . meta l4proto . th dport map @affinity',
      'ip6 daddr . meta l4proto . th dport @over-4 goto draw-16',
      'dnat ip6 to ip6 daddr . meta l4proto . th dport . numgen random mod 4 map @endpoints',
      'dnat ip6 to ip6 daddr . meta l4proto . th dport . numgen random mod 3 map @endpoints',
      'dnat ip6 to ip6 daddr . meta l4proto . th dport . numgen random mod 2 map @endpoints',
      'dnat ip6 to ip6 daddr . meta l4proto . th dport . numgen random mod 1 map @endpoints',
    ])
    expect(chains.get('draw-local-node-port-16')?.slice(0, 2)).toEqual([
      'meta l4proto . th dport @local-node-port-over-16 goto draw-local-node-port-64',
      'dnat ip6 to meta l4proto . th dport . numgen random mod 16 map @local-node-port-endpoints',
    ])
  })

  test('the rule that remembers a client', () => {
    expect(rememberRules('ip', 10_800)[1]?.text).toBe(
      'meta l4proto udp update @affinity { ct original ip saddr . ct original ip daddr . meta l4proto . ct original proto-dst timeout 10800s : ip daddr . udp dport }',
    )
  })

  test.each(families)('%s: every set that a rule names exists, and every chain', (family) => {
    const chains = chainsOf(family, settings)
    const known = new Set(chains.map(({ name }) => name))
    for (const { rules } of chains) {
      for (const { text } of rules) {
        for (const [, set = ''] of text.matchAll(/@([a-z0-9-]+)/g))
          expect([...setsIn(family, settings).keys()]).toContain(set)
        for (const [, chain = ''] of text.matchAll(/(?:goto|jump) ([a-z0-9-]+)/g)) expect(known).toContain(chain)
      }
    }
  })

  test.each(families)('%s: every set is used by a rule', (family) => {
    const text = chainsOf(family, settings)
      .flatMap(({ rules }) => rules.map(({ text }) => text))
      .join('\n')
    for (const [name] of setsIn(family, settings)) expect(text).toMatch(new RegExp(`@${name}\\b`))
  })
})

test('no set of ranges has several fields: the kernel copies such a set whenever it changes, whole (65)', () => {
  const copied = [...setShapes].filter(([, { key, interval }]) => interval && key.length > 1)
  expect(copied).toEqual([])
})

describe('with counters', () => {
  const counting = settingsOf({ counters: true })
  /** The lines that one text has and the other does not. */
  const added = (text: string, other: string) => {
    const known = new Set(other.split('\n'))
    return text.split('\n').filter((line) => !known.has(line) && !line.includes('set skeleton-'))
  }

  test.each([
    ['ip', 'ipv4_addr'],
    ['ip6', 'ipv6_addr'],
  ] as const)('%s: two sets more, and a rule before each list', (family, type) => {
    expect(added(skeletonText(family, counting), skeletonText(family, settingsOf()))).toEqual([
      `  set counted { type ${type} . inet_proto . inet_service; counter; }`,
      '  set counted-node-ports { type inet_proto . inet_service; counter; }',
      '    meta l4proto . th dport @counted-node-ports',
      '    meta l4proto . th dport @counted-node-ports',
      `    ${family} daddr . meta l4proto . th dport @counted`,
      `    ${family} daddr . meta l4proto . th dport @counted`,
    ])
    expect(added(skeletonText(family, settingsOf()), skeletonText(family, counting))).toEqual([])
  })
  test('the sets are there only then', () => {
    expect([...setsIn('ip', settingsOf()).keys()].filter((name) => counterSets.includes(name))).toEqual([])
    expect([...setsIn('ip', counting).keys()]).toEqual([...setsIn('ip', settingsOf()).keys(), ...counterSets])
  })
})

describe('the version of the rules', () => {
  test('is another one for other options that change a rule', () => {
    const versions = [
      settings,
      settingsOf({ masqueradeBit: 15 }),
      settingsOf({ masqueradeAll: true }),
      settingsOf({ counters: true }),
      settingsOf({ detectLocal: { mode: 'BridgeInterface', name: 'cni0' } }),
      settingsOf({ detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'cali' } }),
    ].map((options) => skeletonVersion('ip', options))
    expect(new Set(versions).size).toBe(versions.length)
  })
  test('is the same for options that are data', () => {
    expect(skeletonVersion('ip', settingsOf({ nodePortAddresses: ['10.0.0.0/8'], externalIps: false }))).toBe(
      skeletonVersion('ip', settings),
    )
  })
})

test('draws end with one that cannot miss', () => {
  const { sizes } = listKinds.services
  for (const [index, size] of sizes.entries()) {
    const draws = drawsOf(listKinds.services, size)
    expect(draws[0]?.below).toBe(size)
    expect(draws.at(-1)?.below).toBe((sizes[index - 1] ?? 0) + 1)
  }
})
