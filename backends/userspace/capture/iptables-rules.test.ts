import { describe, expect, it } from 'vitest'
import { nodeAddresses, openPortal, type PortalInit } from '../testing/open-portal.js'
import type { NodeAddresses, OpenPortal } from './capture.js'
import { areRules, chainsFound, chainsOf, jumpsTo, ourLines, restoreInput, rulesOf } from './iptables-rules.js'

const open = (init: PortalInit, port: number) =>
  openPortal({ service: 'default/nginx-deployment', portName: '', address: '10.96.232.82', ...init }, { port })

const chains = chainsOf('kpng-userspace')
const jumps = jumpsTo(chains)

const node = nodeAddresses({
  insideCidrs: ['10.244.0.0/24', 'fd44::/64'],
  nodeIps: { IPv4: '172.18.0.2', IPv6: 'fd18::2' },
})

const rules = (portals: OpenPortal[], bindIp?: string, at: NodeAddresses = node) => {
  const family = portals[0]?.portal.family ?? 'IPv4'
  const { nat, filter } = rulesOf(family, portals, at, { tcp: bindIp, udp: bindIp ?? at.nodeIps[family] }, chains)
  return [...nat, ...filter].filter((line) => !line.includes('! --ctstate DNAT'))
}

describe('iptables rules, as `iptables-save | grep` shows them', () => {
  it('cluster IP', () => {
    expect(rules([open({}, 33_059)])).toEqual([
      '-A KPNG-PORTALS-CONTAINER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -j REDIRECT --to-ports 33059',
      '-A KPNG-PORTALS-HOST -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -j DNAT --to-destination 172.18.0.2:33059',
    ])
  })

  it('node port, IPv6', () => {
    expect(rules([open({ address: '', port: 30_080, family: 'IPv6', kind: 'nodePort' }, 33_059)])).toEqual([
      '-A KPNG-NODEPORT-CONTAINER -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 30080 -j REDIRECT --to-ports 33059',
      '-A KPNG-NODEPORT-HOST -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 30080 -j DNAT --to-destination [fd18::2]:33059',
    ])
  })

  it('UDP goes to the one address that its proxy socket has, whichever interface it came in by', () => {
    const [container, host] = rules([open({ protocol: 'udp', port: 53 }, 33_060)])
    for (const rule of [container, host]) expect(rule).toMatch(/-j DNAT --to-destination 172\.18\.0\.2:33060$/)
  })

  it('a proxy bound to one address is reached there', () => {
    const [container, host] = rules([open({ protocol: 'udp', port: 53 }, 33_060)], '10.0.0.5')
    expect(container).toMatch(/-p udp .* -m udp --dport 53 -j DNAT --to-destination 10\.0\.0\.5:33060$/)
    expect(host).toMatch(/-j DNAT --to-destination 10\.0\.0\.5:33060$/)
  })

  it.each([
    [
      'nobody anywhere',
      {},
      ['refuse', 'refuse'],
      [
        '-A KPNG-PORTALS-FILTER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -m conntrack --ctstate NEW -j REJECT --reject-with tcp-reset',
      ],
    ],
    [
      'nobody anywhere, UDP node port; clients in mid-flow are told too',
      { protocol: 'udp', address: '', port: 30_053, kind: 'nodePort' },
      ['refuse', 'refuse'],
      [
        '-A KPNG-PORTALS-FILTER -p udp -m comment --comment "default/nginx-deployment" -m udp --dport 33059 -m addrtype --dst-type LOCAL -j REJECT --reject-with icmp-port-unreachable',
        '-A KPNG-PORTALS-FILTER -p udp -m comment --comment "default/nginx-deployment" -m udp --dport 30053 -m addrtype --dst-type LOCAL -m conntrack --ctstate NEW -j REJECT --reject-with icmp-port-unreachable',
      ],
    ],
    [
      'none here',
      {},
      ['drop', 'drop'],
      [
        '-A KPNG-PORTALS-FILTER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -m conntrack --ctstate NEW -j DROP',
      ],
    ],
  ] as const)('%s', (_name, init, fates, expected) =>
    expect(rules([open({ ...init, fates }, 33_059)])).toEqual(expected),
  )

  it('node ports only at the addresses that serve them', () => {
    const at = { ...node, nodePortCidrs: { IPv4: ['172.18.0.2/32', '192.0.2.0/24'], IPv6: [] } }
    const nodePort = { address: '', port: 30_080, kind: 'nodePort' } as const
    expect(rules([open(nodePort, 33_059)], undefined, at).map((line) => line.replace(/ -p tcp.*/, ''))).toEqual([
      '-A KPNG-NODEPORT-CONTAINER -d 172.18.0.2/32',
      '-A KPNG-NODEPORT-HOST -d 172.18.0.2/32',
      '-A KPNG-NODEPORT-CONTAINER -d 192.0.2.0/24',
      '-A KPNG-NODEPORT-HOST -d 192.0.2.0/24',
    ])
    expect(rules([open({ ...nodePort, family: 'IPv6' }, 33_059)], undefined, at)).toEqual([])
  })

  it('a name cannot bring rules of its own', () => {
    for (const rule of rules([open({ service: 'a"\n-A INPUT -j ACCEPT' }, 1)]))
      expect(rule).toContain('--comment "a__-A_INPUT_-j_ACCEPT"')
  })

  it('are found again in what iptables-save prints, and so is a change of them', () => {
    const { nat, filter } = rulesOf('IPv4', [open({}, 33_059)], node, { tcp: undefined, udp: undefined }, chains)
    const jumpLines = jumps.map(({ from, to, match }) => {
      const words = match.map((word) => (word.includes(' ') ? `"${word}"` : word))
      return `-A ${from} ${words.join(' ')} -j ${to}`
    })
    const saved = [...jumpLines, '-A INPUT -j ACCEPT', ':KPNG-PORTALS-HOST - [0:0]', ...[...nat].reverse(), ...filter]
    const found = ourLines(saved.join('\n'), chains)
    expect(found).toHaveLength(jumps.length + nat.length + filter.length)
    expect(areRules(found, { nat, filter }, chains)).toBe(true)
    for (const gone of found) {
      expect(
        areRules(
          found.filter((line) => line !== gone),
          { nat, filter },
          chains,
        ),
      ).toBe(false)
    }
  })

  it('declares our chains whole and touches no other', () => {
    expect(restoreInput({ nat: [], filter: [] }, chains)).toBe(`*nat
:KPNG-PORTALS-CONTAINER - [0:0]
:KPNG-PORTALS-HOST - [0:0]
:KPNG-NODEPORT-CONTAINER - [0:0]
:KPNG-NODEPORT-HOST - [0:0]
COMMIT
*filter
:KPNG-PORTALS-FILTER - [0:0]
COMMIT
`)
  })

  it('a proxy port is closed at this node only: a forwarded packet may have the same port', () => {
    for (const protocol of ['tcp', 'udp'] as const) {
      const { filter } = rulesOf('IPv4', [open({ protocol }, 33_059)], node, { tcp: undefined, udp: undefined }, chains)
      expect(filter).toHaveLength(1)
      expect(filter[0]).toContain('--dport 33059 -m addrtype --dst-type LOCAL -m conntrack ! --ctstate DNAT -j REJECT')
    }
  })

  it('a specialised proxy has chains of its own, with names that iptables takes', () => {
    const special = chainsOf('kpng-userspace-special')
    const main: string[] = Object.values(chains)
    for (const chain of Object.values(special)) {
      expect(main).not.toContain(chain)
      expect(chain.length).toBeLessThanOrEqual(28)
    }
    expect(chainsOf('kpng-userspace-other').filter).not.toBe(special.filter)
    const { nat, filter } = rulesOf('IPv4', [open({}, 33_059)], node, { tcp: undefined, udp: undefined }, special)
    expect(ourLines([...nat, ...filter].join('\n'), chains)).toEqual([])
    const listed = [...Object.values(special), chains.filter, 'KPNG-FOREIGN'].map((chain) => `-N ${chain}`).join('\n')
    expect(chainsFound(listed)).toEqual([special, chains])
  })
})
