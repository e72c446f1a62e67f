import { describe, expect, test } from 'vitest'
import {
  bridgedTraffic,
  conntrackTable,
  forwarding,
  kernel,
  nftRules,
  openFilesLimit,
  reversePath,
  rights,
  routeLocalnet,
} from './node-checks.js'
import { agentStates, leftovers, mixedFlavours, otherPrograms, twoKpng, twoProxies } from './proxy-checks.js'
import { ownerOf, proxyOf } from './read-proxies.js'

/** What was found, as `level: what`. */
const found = (findings: readonly { level: string; what: string }[]) =>
  findings.map(({ level, what }) => `${level}: ${what}`)

test.each([
  ['6.18.5', 0],
  ['5.9.0-rc1', 0],
  ['5.10.0', 0],
  ['5.8.18-generic', 1],
  ['4.19.0', 1],
  ['unknown', 0],
])('kernel %s', (kernelRelease, count) => {
  expect(kernel({ kernelRelease })).toHaveLength(count)
})

test('the reason of the nftables backend', () => {
  expect(nftRules({ nftProblem: '' })).toEqual([])
  expect(found(nftRules({ nftProblem: 'The kernel lacks CONFIG_NFT_NAT.' }))).toEqual([
    'problem: The nftables backend cannot work here: The kernel lacks CONFIG_NFT_NAT.',
  ])
})

test('rights', () => {
  expect(rights({ hasNetAdmin: true })).toEqual([])
  expect(rights({ hasNetAdmin: false })).toMatchObject([{ level: 'warning' }])
})

test.each([
  ['forwards', { 'net.ipv4.ip_forward': '1' }, ['10.0.0.1'], []],
  ['does not forward', { 'net.ipv4.ip_forward': '0' }, ['10.0.0.1'], ['problem']],
  ['IPv6 that nobody has', { 'net.ipv6.conf.all.forwarding': '0' }, ['10.0.0.1'], []],
  ['IPv6', { 'net.ipv6.conf.all.forwarding': '0' }, ['fd00::1'], ['note']],
  [
    'IPv6 that is switched off',
    { 'net.ipv6.conf.all.forwarding': '0', 'net.ipv6.conf.all.disable_ipv6': '1' },
    ['fd00::1'],
    [],
  ],
  ['unknown', {}, [], []],
])('forwarding: %s', (_, sysctls, addresses, levels) => {
  expect(forwarding({ sysctls: sysctls as Record<string, string>, addresses }).map(({ level }) => level)).toEqual(
    levels,
  )
})

test('interfaces with strict checks, some of them', () => {
  expect(reversePath({ strictInterfaces: [] })).toEqual([])
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  expect(reversePath({ strictInterfaces: names })).toMatchObject([{ examples: ['a', 'b', 'c', 'd', 'e'], more: 2 }])
})

test.each([
  ['no bridge', [], undefined, 0],
  ['a bridge, and the module', ['cni0'], '1', 0],
  ['a bridge, and the sysctl is off', ['cni0'], '0', 1],
  ['a bridge, and no module', ['cni0'], undefined, 1],
])('bridged traffic: %s', (_, bridges, value, count) => {
  const sysctls: Record<string, string> = value === undefined ? {} : { 'net.bridge.bridge-nf-call-iptables': value }
  expect(bridgedTraffic({ bridges, sysctls })).toHaveLength(count)
})

test('route_localnet', () => {
  const off = { 'net.ipv4.conf.all.route_localnet': '0' }
  const on = { 'net.ipv4.conf.all.route_localnet': '1' }
  const kubeProxy = [{ program: 'iptables-nft', saved: '*nat\n:KUBE-SERVICES - [0:0]\nCOMMIT\n' }]
  const kpng = [{ program: 'iptables-nft', saved: '*nat\n:KPNG-OWNER-kpng - [0:0]\n:KUBE-SERVICES - [0:0]\nCOMMIT\n' }]
  expect(routeLocalnet({ sysctls: off, iptables: kubeProxy })).toEqual([])
  expect(routeLocalnet({ sysctls: on, iptables: kubeProxy })).toMatchObject([{ level: 'note' }])
  expect(routeLocalnet({ sysctls: on, iptables: kpng })).toEqual([])
})

test.each([
  [0, 100, []],
  [79, 100, []],
  [80, 100, ['warning']],
  [95, 100, ['problem']],
  [100, 100, ['problem']],
  [5, 0, []],
])('%i of %i tracked connections', (count, max, levels) => {
  expect(conntrackTable({ conntrack: { count, max } }).map(({ level }) => level)).toEqual(levels)
})

test('open files', () => {
  expect(openFilesLimit({ openFiles: { of: 'kpng', limit: 4096 } })).toEqual([])
  expect(found(openFilesLimit({ openFiles: { of: 'kpng', limit: 1024 } }))).toEqual([
    'warning: kpng may open 1024 files.',
  ])
})

describe('proxies', () => {
  const nobody = { processes: [], ports: [], agents: [] }
  const kubeProxy = { pid: 7, program: 'kube-proxy' } as const
  const kpng = { pid: 8, program: 'kpng', backend: 'to-nft' } as const

  test.each([
    ['nobody', nobody, []],
    ['kube-proxy', { ...nobody, processes: [kubeProxy] }, ['note']],
    ['its port alone', { ...nobody, ports: [{ port: 10249, owner: 'kube-proxy' as const }] }, ['note']],
    ['kpng', { ...nobody, processes: [kpng] }, []],
    ['both', { ...nobody, processes: [kubeProxy, kpng] }, ['problem']],
    [
      'kube-proxy, and an agent that answers',
      { ...nobody, processes: [kubeProxy], agents: [{ path: 'a' }] },
      ['problem'],
    ],
    [
      'kube-proxy, and an old socket',
      { ...nobody, processes: [kubeProxy], agents: [{ path: 'a', problem: 'gone' }] },
      ['note'],
    ],
  ])('two proxies: %s', (_, facts, levels) => {
    expect(twoProxies(facts).map(({ level }) => level)).toEqual(levels)
  })

  test('two kpng with the same name', () => {
    const special = { ...kpng, pid: 9, serviceProxyName: 'mine' }
    expect(twoKpng({ processes: [kpng, special, kubeProxy] })).toEqual([])
    expect(found(twoKpng({ processes: [kpng, { ...kpng, pid: 10 }, special] }))).toEqual([
      'problem: 2 kpng serve the default proxy on this node.',
    ])
    expect(found(twoKpng({ processes: [special, { ...special, pid: 11 }] }))).toEqual([
      'problem: 2 kpng serve the service-proxy-name mine on this node.',
    ])
  })

  test('ports of other programs', () => {
    expect(otherPrograms({ ports: [{ port: 10249, owner: 'kpng' }] })).toEqual([])
    expect(found(otherPrograms({ ports: [{ port: 10249, owner: 'another program' }] }))).toEqual([
      'warning: Another program answers on port 10249.',
    ])
  })

  test.each([
    ['a healthy agent', {}, []],
    ['a socket without an agent', { problem: 'gone' }, ['note']],
    ['a failed sync', { syncError: 'nft said no' }, ['problem']],
    ['a stale state', { stale: 'no watch' }, ['warning']],
    ['both', { syncError: 'nft said no', stale: 'no watch' }, ['problem', 'warning']],
  ])('%s', (_, fact, levels) => {
    expect(agentStates({ agents: [{ path: '/run/kpng/agent.sock', ...fact }] }).map(({ level }) => level)).toEqual(
      levels,
    )
  })

  test('rules of kube-proxy are leftovers only if it does not run', () => {
    expect(leftovers({ ...nobody, leftovers: [] })).toEqual([])
    expect(leftovers({ ...nobody, processes: [kubeProxy], leftovers: ['chains'] })).toEqual([])
    expect(leftovers({ ...nobody, processes: [kpng], leftovers: ['chains'] })).toMatchObject([{ level: 'warning' }])
  })

  test.each([
    ['one variant', { 'iptables-nft': 3, 'iptables-legacy': 0 }, 0],
    ['both', { 'iptables-nft': 3, 'iptables-legacy': 1 }, 1],
    ['both, of different families', { 'iptables-nft': 3, 'ip6tables-legacy': 1 }, 0],
    ['none', {}, 0],
  ])('variants of iptables: %s', (_, rules, count) => {
    const iptables = Object.entries(rules).map(([program, number]) => ({
      program,
      saved: `*nat\n:OUTPUT ACCEPT [0:0]\n${'-A OUTPUT -j RETURN\n'.repeat(number)}COMMIT\n`,
    }))
    expect(mixedFlavours({ iptables })).toHaveLength(count)
  })

  test.each([
    ['/usr/local/bin/kube-proxy --config=/var/lib/config.conf', { program: 'kube-proxy' }],
    ['node /usr/bin/kpng kube to-local to-nft', { program: 'kpng', backend: 'to-nft' }],
    [
      'node bin/kpng.js kube --service-proxy-name mine to-local to-nft',
      { program: 'kpng', backend: 'to-nft', serviceProxyName: 'mine' },
    ],
    [
      'kpng local to-userspacelin --service-proxy-name=mine',
      { program: 'kpng', backend: 'to-userspacelin', serviceProxyName: 'mine' },
    ],
    ['node bin/kpng.js kube to-local to-nft --dry-run', undefined],
    ['node bin/kpng.js kube to-api', undefined],
    ['grep kube-proxy', undefined],
    ['vi kpng to-nft.md', undefined],
  ])('%s', (line, proxy) => {
    expect(proxyOf(line.split(' '))).toEqual(proxy)
  })

  test.each([
    ['# HELP x\nkpng_build_info 1\nkubeproxy_sync 2', 'kpng'],
    ['kubeproxy_sync_proxy_rules 2', 'kube-proxy'],
    ['404 page not found', 'another program'],
  ])('who serves metrics: %s', (text, owner) => {
    expect(ownerOf(text)).toBe(owner)
  })
})
