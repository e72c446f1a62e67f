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
  return restoreInput({ family, bindIp }, steering)
    .split('\n')
    .filter((line) => line.startsWith('-A') && !line.includes('! --ctstate DNAT'))
}

describe('iptables rules, as `iptables-save | grep` showed them in kube-proxy', () => {
  it('cluster IP', () => {
    expect(rules([open({}, 33_059)])).toEqual([
      '-A KUBE-PORTALS-CONTAINER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -j REDIRECT --to-ports 33059',
      '-A KUBE-PORTALS-HOST -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -j DNAT --to-destination 172.18.0.2:33059',
    ])
  })

  it('node port, IPv6', () => {
    expect(rules([open({ ip: '', port: 30_080, family: 'v6', kind: 'node-port' }, 33_059)])).toEqual([
      '-A KUBE-NODEPORT-CONTAINER -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 30080 -j REDIRECT --to-ports 33059',
      '-A KUBE-NODEPORT-HOST -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 30080 -j DNAT --to-destination [fd18::2]:33059',
    ])
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
        '-A KUBE-PORTALS-FILTER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -m conntrack --ctstate NEW -j REJECT --reject-with tcp-reset',
      ],
    ],
    [
      'nobody anywhere, UDP node port; clients in mid-flow are told too',
      { protocol: 'udp', ip: '', port: 30_053 },
      { inside: 'refuse', outside: 'refuse' },
      [
        '-A KUBE-PORTALS-FILTER -p udp -m comment --comment "default/nginx-deployment" -m udp --dport 33059 -j REJECT',
        '-A KUBE-PORTALS-FILTER -p udp -m comment --comment "default/nginx-deployment" -m udp --dport 30053 -m addrtype --dst-type LOCAL -m conntrack --ctstate NEW -j REJECT',
      ],
    ],
    [
      'none here',
      {},
      { inside: 'drop', outside: 'drop' },
      [
        '-A KUBE-PORTALS-FILTER -d 10.96.232.82/32 -p tcp -m comment --comment "default/nginx-deployment" -m tcp --dport 80 -m conntrack --ctstate NEW -j DROP',
      ],
    ],
  ] as const)('%s', (_name, init, fates, expected) => expect(rules([open(init, 33_059, fates)])).toEqual(expected))

  it('a name cannot bring rules of its own', () => {
    for (const rule of rules([open({ servicePort: 'a"\n-A INPUT -j ACCEPT' }, 1)]))
      expect(rule).toContain('--comment "a__-A_INPUT_-j_ACCEPT"')
  })

  it('declares our chains whole and touches no other', () => {
    const text = restoreInput({ family: 'v4', bindIp: undefined }, {
      open: [],
      insideCidrs: [],
      nodeIps: {},
    } as unknown as Steering)
    expect(text).toBe(`*nat
:KUBE-PORTALS-CONTAINER - [0:0]
:KUBE-PORTALS-HOST - [0:0]
:KUBE-NODEPORT-CONTAINER - [0:0]
:KUBE-NODEPORT-HOST - [0:0]
COMMIT
*filter
:KUBE-PORTALS-FILTER - [0:0]
COMMIT
`)
  })
})
