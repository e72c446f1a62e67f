import { describe, expect, it } from 'vitest'
import type { OpenPortal, Steering } from './capture.js'
import { restoreInput } from './iptables-rules.js'

const open = (init: Partial<OpenPortal['portal']>, port: number, fates?: OpenPortal['fates']): OpenPortal => ({
  portal: {
    servicePort: 'default/nginx-deployment',
    kind: 'cluster-ip',
    family: 'v4',
    protocol: 'tcp',
    ip: '10.96.232.82',
    port: 80,
    sourceRanges: undefined,
    ...init,
  },
  place: { ip: '0.0.0.0', port },
  fates: fates ?? { inside: 'forward', outside: 'forward' },
})

const rules = (portals: OpenPortal[], bindIp?: string, nodeIp: string | undefined = '172.18.0.2') => {
  const steering = {
    open: portals,
    insideCidrs: ['10.244.0.0/24', 'fd44::/64'],
    nodeIps: { v4: nodeIp, v6: 'fd18::2' },
  } as unknown as Steering
  const family = portals[0]?.portal.family ?? 'v4'
  return restoreInput({ family, boundIps: { tcp: bindIp, udp: bindIp ?? nodeIp } }, steering)
    .split('\n')
    .filter((line) => line.startsWith('-A') && !line.includes('! --ctstate DNAT'))
}

describe('iptables rules, as `iptables-save | grep` shows them', () => {
  it('cluster IP', () => {
    expect(rules([open({}, 33_059)])).toEqual([
      '-A KPNG-PORTALS-CONTAINER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -j REDIRECT --to-ports 33059',
      '-A KPNG-PORTALS-HOST -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -j DNAT --to-destination 172.18.0.2:33059',
    ])
  })

  it('node port, IPv6', () => {
    expect(rules([open({ ip: '', port: 30_080, family: 'v6', kind: 'node-port' }, 33_059)])).toEqual([
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
      { inside: 'refuse', outside: 'refuse' },
      [
        '-A KPNG-PORTALS-FILTER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -m conntrack --ctstate NEW -j REJECT --reject-with tcp-reset',
      ],
    ],
    [
      'nobody anywhere, UDP node port; clients in mid-flow are told too',
      { protocol: 'udp', ip: '', port: 30_053 },
      { inside: 'refuse', outside: 'refuse' },
      [
        '-A KPNG-PORTALS-FILTER -p udp -m comment --comment "default/nginx-deployment" -m udp --dport 33059 -j REJECT',
        '-A KPNG-PORTALS-FILTER -p udp -m comment --comment "default/nginx-deployment" -m udp --dport 30053 -m addrtype --dst-type LOCAL -m conntrack --ctstate NEW -j REJECT',
      ],
    ],
    [
      'none here',
      {},
      { inside: 'drop', outside: 'drop' },
      [
        '-A KPNG-PORTALS-FILTER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -m conntrack --ctstate NEW -j DROP',
      ],
    ],
  ] as const)('%s', (_name, init, fates, expected) => expect(rules([open(init, 33_059, fates)])).toEqual(expected))

  it('a name cannot bring rules of its own', () => {
    for (const rule of rules([open({ servicePort: 'a"\n-A INPUT -j ACCEPT' }, 1)]))
      expect(rule).toContain('--comment "a__-A_INPUT_-j_ACCEPT"')
  })

  it('declares our chains whole and touches no other', () => {
    const text = restoreInput({ family: 'v4', boundIps: { tcp: undefined, udp: undefined } }, {
      open: [],
      insideCidrs: [],
      nodeIps: {},
    } as unknown as Steering)
    expect(text).toBe(`*nat
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
})
