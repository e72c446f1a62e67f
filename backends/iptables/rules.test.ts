import { describe, expect, test } from 'vitest'
import { endpoint, ips, type TestService, tcp, udp, view } from '../../dataplane/testing/objects.js'
import { type IptablesOptions, renderRules } from './index.js'
import { chainNames, fixedChains, namesOfOwner } from './names.js'

// The rules of the main cases, as iptables-restore reads them.

const options: IptablesOptions = {
  detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16', 'fd00:244::/32'] },
  ipv6: false,
}

const a = endpoint('10.244.1.10', { local: true })
const b = endpoint('10.244.2.10')
/** How an endpoint of another node looks under externalTrafficPolicy Local. */
const elsewhere = endpoint('10.244.2.10', { scopes: ['internal', 'cluster'] })

/** The lines that are about the Service: its own chains, and its rules in the shared ones. Constant chains are left out. */
function linesFor(service: TestService, given: IptablesOptions = {}): string {
  const rules = renderRules(view([service]), { ...options, ...given })
  const constant = /^-A (?:KPNG-OWNER|KUBE-(?:MARK|POSTROUTING|FORWARD))|must be the last rule/
  const lines = rules.split('\n').filter((line) => line.startsWith('-A ') && !constant.test(line))
  return lines.map((line) => line.slice(3)).join('\n')
}

test.each([
  ['default/kubernetes:httpstcp', 'KUBE-SVC-NPX46M4PTMTKRN6Y'],
  ['kube-system/kube-dns:dnsudp', 'KUBE-SVC-TCOU7JCQXEZGVUNU'],
  ['kube-system/kube-dns:dns-tcptcp', 'KUBE-SVC-ERIFXISQEP7F7OF4'],
])('chains have the names that every cluster knows: %s', (text, chain) => {
  expect(chainNames('kpng').port('SVC', text)).toBe(chain)
})

test('no chain of a specialised proxier is longer than 28 characters, and none is called as one of the main kpng', () => {
  for (const name of ['edge', 'conformance', 'a', 'owner', 'kube-router-beside', '---']) {
    const names = chainNames(name)
    const chains = [...fixedChains(names), names.port('SVC', 'x'), names.port('SEP', 'y')]
    for (const chain of chains) expect(chain).toMatch(/^KPNG-[A-Z0-9a-z-]{1,23}$/)
    expect(namesOfOwner(names.owner)?.services).toBe(names.services)
    expect(names.isPortChain(names.port('FW', 'x'))).toBe(true)
  }
  expect(chainNames('edge').services).toBe('KPNG-EDGE-SERVICES')
  expect(chainNames('owner').services).not.toBe('KPNG-OWNER-SERVICES')
})

test('the constant chains, the jumps and where node ports are open', () => {
  const rules = renderRules(view([]), { ...options, nodePortAddresses: ['all'], localhostNodePorts: true })
  expect(rules).toMatchInlineSnapshot(`
    "# iptables-restore --noflush
    *nat
    :KUBE-SERVICES - [0:0]
    :KUBE-POSTROUTING - [0:0]
    :KUBE-NODEPORTS - [0:0]
    :KUBE-MARK-MASQ - [0:0]
    :KPNG-OWNER-kpng - [0:0]
    -A KPNG-OWNER-kpng -m comment --comment "these chains belong to kpng (kpng)"
    -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
    -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
    -A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
    -A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
    -A KUBE-SERVICES -m addrtype --dst-type LOCAL -m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain" -j KUBE-NODEPORTS
    -I OUTPUT 1 -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
    -I PREROUTING 1 -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
    -I POSTROUTING 1 -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
    COMMIT
    *filter
    :KUBE-SERVICES - [0:0]
    :KUBE-PROXY-FIREWALL - [0:0]
    :KUBE-NODEPORTS - [0:0]
    :KUBE-FORWARD - [0:0]
    :KUBE-EXTERNAL-SERVICES - [0:0]
    :KPNG-OWNER-kpng - [0:0]
    -A KPNG-OWNER-kpng -m comment --comment "these chains belong to kpng (kpng)"
    -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
    -A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
    -A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
    -A KUBE-NODEPORTS ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
    -I INPUT 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
    -I FORWARD 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
    -I OUTPUT 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
    -I INPUT 1 -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
    -I FORWARD 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
    -I OUTPUT 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
    -I FORWARD 1 -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
    -I INPUT 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
    -I FORWARD 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
    -I OUTPUT 1 -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
    COMMIT
    "
  `)
})

describe('where node ports are open', () => {
  test.each<[string, readonly string[], boolean, readonly string[]]>([
    ['the primary address', ['primary'], true, ['-d 172.30.0.1/32 -m addrtype --dst-type LOCAL']],
    ['all but loopback', ['all'], false, ['! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL']],
    ['all', ['all'], true, ['-m addrtype --dst-type LOCAL']],
    ['loopback alone, which is off', ['localhost'], false, []],
    ['loopback alone', ['localhost'], true, ['-d 127.0.0.0/8 -m addrtype --dst-type LOCAL']],
  ])('%s', (_, nodePortAddresses, localhostNodePorts, expected) => {
    const rules = renderRules(view([]), { ...options, nodePortAddresses, localhostNodePorts })
    const matches = [...rules.matchAll(/^-A KUBE-SERVICES (.*) -m comment .* -j KUBE-NODEPORTS$/gm)].map(
      ([, match]) => match,
    )
    expect(matches).toEqual(expected)
  })
})

test('pods with several ranges: a client that is in none of them is masqueraded', () => {
  const detectLocal = { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16', '10.9.0.0/16'] } as const
  const rules = renderRules(view([{ name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [a] }]), {
    ...options,
    detectLocal,
  })
  expect(
    rules
      .split('\n')
      .filter((line) => /^-A \S+ .*MARK-OUTSIDE|^-A KUBE-MARK-OUTSIDE/.test(line))
      .join('\n'),
  ).toMatchInlineSnapshot(`
    "-A KUBE-MARK-OUTSIDE -s 10.244.0.0/16 -j RETURN
    -A KUBE-MARK-OUTSIDE -s 10.9.0.0/16 -j RETURN
    -A KUBE-MARK-OUTSIDE -j KUBE-MARK-MASQ
    -A KUBE-SVC-WFZ6SSKTBAONFAMD -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 cluster IP" -m tcp --dport 80 -j KUBE-MARK-OUTSIDE"
  `)
})

test('names that would end a quote or a line do not', () => {
  const web = { name: 'web', ips: { clusterIps: ips('10.96.0.1') }, ports: [tcp(80, { name: 'a"\n-j DROP' })] }
  expect(linesFor(web)).toMatchInlineSnapshot(
    `"KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:a??-j DROP has no endpoints" -m tcp --dport 80 -j REJECT"`,
  )
})

describe('one service port', () => {
  test('a cluster IP with two endpoints', () => {
    expect(linesFor({ name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [a, b] })).toMatchInlineSnapshot(`
      "KUBE-SEP-QKKTQK53BDA6D3KX -s 10.244.1.10/32 -m comment --comment "default/web:tcp-80" -j KUBE-MARK-MASQ
      KUBE-SEP-QKKTQK53BDA6D3KX -p tcp -m comment --comment "default/web:tcp-80" -m tcp -j DNAT --to-destination 10.244.1.10:8080
      KUBE-SEP-6ZPCG44EGWBRADAP -s 10.244.2.10/32 -m comment --comment "default/web:tcp-80" -j KUBE-MARK-MASQ
      KUBE-SEP-6ZPCG44EGWBRADAP -p tcp -m comment --comment "default/web:tcp-80" -m tcp -j DNAT --to-destination 10.244.2.10:8080
      KUBE-SVC-WFZ6SSKTBAONFAMD ! -s 10.244.0.0/16 -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
      KUBE-SVC-WFZ6SSKTBAONFAMD -m comment --comment "default/web:tcp-80 -> 10.244.1.10:8080" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-QKKTQK53BDA6D3KX
      KUBE-SVC-WFZ6SSKTBAONFAMD -m comment --comment "default/web:tcp-80 -> 10.244.2.10:8080" -j KUBE-SEP-6ZPCG44EGWBRADAP
      KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 cluster IP" -m tcp --dport 80 -j KUBE-SVC-WFZ6SSKTBAONFAMD"
    `)
  })

  test('in a large cluster, only an endpoint on this node has a chain, and only shared chains have comments', () => {
    const service = {
      name: 'web',
      ips: { clusterIps: ips('10.96.0.1'), externalIps: ips('198.51.100.1') },
      endpoints: [a, b],
    }
    expect(linesFor(service, { largeClusterEndpoints: 1 })).toMatchInlineSnapshot(`
      "KUBE-SEP-QKKTQK53BDA6D3KX -s 10.244.1.10/32 -j KUBE-MARK-MASQ
      KUBE-SEP-QKKTQK53BDA6D3KX -p tcp -m tcp -j DNAT --to-destination 10.244.1.10:8080
      KUBE-SVC-WFZ6SSKTBAONFAMD ! -s 10.244.0.0/16 -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ
      KUBE-SVC-WFZ6SSKTBAONFAMD -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-QKKTQK53BDA6D3KX
      KUBE-SVC-WFZ6SSKTBAONFAMD -p tcp -j DNAT --to-destination 10.244.2.10:8080
      KUBE-EXT-WFZ6SSKTBAONFAMD -j KUBE-MARK-MASQ
      KUBE-EXT-WFZ6SSKTBAONFAMD -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 cluster IP" -m tcp --dport 80 -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 198.51.100.1/32 -p tcp -m comment --comment "default/web:tcp-80 external IP" -m tcp --dport 80 -j KUBE-EXT-WFZ6SSKTBAONFAMD"
    `)
  })

  test('session affinity, UDP', () => {
    const sessionAffinity = { case: 'clientIp', value: { timeoutSeconds: 600 } } as const
    expect(
      linesFor({
        name: 'dns',
        ips: { clusterIps: ips('10.96.0.10') },
        ports: [udp(53)],
        sessionAffinity,
        endpoints: [a, b],
      }),
    ).toMatchInlineSnapshot(`
      "KUBE-SEP-4N4FR2DQJI6ZFEVT -s 10.244.1.10/32 -m comment --comment "default/dns:udp-53" -j KUBE-MARK-MASQ
      KUBE-SEP-4N4FR2DQJI6ZFEVT -p udp -m comment --comment "default/dns:udp-53" -m recent --set --name KUBE-SEP-4N4FR2DQJI6ZFEVT -m udp -j DNAT --to-destination 10.244.1.10:8080
      KUBE-SEP-HC6UC2TU2TKXNNRM -s 10.244.2.10/32 -m comment --comment "default/dns:udp-53" -j KUBE-MARK-MASQ
      KUBE-SEP-HC6UC2TU2TKXNNRM -p udp -m comment --comment "default/dns:udp-53" -m recent --set --name KUBE-SEP-HC6UC2TU2TKXNNRM -m udp -j DNAT --to-destination 10.244.2.10:8080
      KUBE-SVC-ICVIG5JYU26CFTPH ! -s 10.244.0.0/16 -d 10.96.0.10/32 -p udp -m comment --comment "default/dns:udp-53 cluster IP" -m udp --dport 53 -j KUBE-MARK-MASQ
      KUBE-SVC-ICVIG5JYU26CFTPH -m comment --comment "default/dns:udp-53 -> 10.244.1.10:8080" -m recent --rcheck --seconds 600 --reap --name KUBE-SEP-4N4FR2DQJI6ZFEVT -j KUBE-SEP-4N4FR2DQJI6ZFEVT
      KUBE-SVC-ICVIG5JYU26CFTPH -m comment --comment "default/dns:udp-53 -> 10.244.2.10:8080" -m recent --rcheck --seconds 600 --reap --name KUBE-SEP-HC6UC2TU2TKXNNRM -j KUBE-SEP-HC6UC2TU2TKXNNRM
      KUBE-SVC-ICVIG5JYU26CFTPH -m comment --comment "default/dns:udp-53 -> 10.244.1.10:8080" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-4N4FR2DQJI6ZFEVT
      KUBE-SVC-ICVIG5JYU26CFTPH -m comment --comment "default/dns:udp-53 -> 10.244.2.10:8080" -j KUBE-SEP-HC6UC2TU2TKXNNRM
      KUBE-SERVICES -d 10.96.0.10/32 -p udp -m comment --comment "default/dns:udp-53 cluster IP" -m udp --dport 53 -j KUBE-SVC-ICVIG5JYU26CFTPH"
    `)
  })

  test('every kind of address, policy Cluster', () => {
    expect(
      linesFor({
        name: 'web',
        ips: { clusterIps: ips('10.96.0.1'), externalIps: ips('198.51.100.1'), loadBalancerIps: ips('192.0.2.1') },
        ports: [tcp(80, { nodePort: 30080 })],
        endpoints: [a],
      }),
    ).toMatchInlineSnapshot(`
      "KUBE-SEP-QKKTQK53BDA6D3KX -s 10.244.1.10/32 -m comment --comment "default/web:tcp-80" -j KUBE-MARK-MASQ
      KUBE-SEP-QKKTQK53BDA6D3KX -p tcp -m comment --comment "default/web:tcp-80" -m tcp -j DNAT --to-destination 10.244.1.10:8080
      KUBE-SVC-WFZ6SSKTBAONFAMD ! -s 10.244.0.0/16 -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
      KUBE-SVC-WFZ6SSKTBAONFAMD -m comment --comment "default/web:tcp-80 -> 10.244.1.10:8080" -j KUBE-SEP-QKKTQK53BDA6D3KX
      KUBE-EXT-WFZ6SSKTBAONFAMD -m comment --comment "masquerade traffic for default/web:tcp-80 external destinations" -j KUBE-MARK-MASQ
      KUBE-EXT-WFZ6SSKTBAONFAMD -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-NODEPORTS -p tcp -m comment --comment "default/web:tcp-80" -m tcp --dport 30080 -j KUBE-EXT-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 cluster IP" -m tcp --dport 80 -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 192.0.2.1/32 -p tcp -m comment --comment "default/web:tcp-80 loadbalancer IP" -m tcp --dport 80 -j KUBE-EXT-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 198.51.100.1/32 -p tcp -m comment --comment "default/web:tcp-80 external IP" -m tcp --dport 80 -j KUBE-EXT-WFZ6SSKTBAONFAMD"
    `)
  })

  test('externalTrafficPolicy Local, with source ranges', () => {
    expect(
      linesFor({
        name: 'web',
        externalTrafficToLocal: true,
        ips: { clusterIps: ips('10.96.0.1'), loadBalancerIps: ips('192.0.2.1') },
        ipFilters: [{ targetIps: ips('192.0.2.1'), sourceRanges: ['203.0.113.0/24'] }],
        endpoints: [a, elsewhere],
      }),
    ).toMatchInlineSnapshot(`
      "KUBE-SEP-QKKTQK53BDA6D3KX -s 10.244.1.10/32 -m comment --comment "default/web:tcp-80" -j KUBE-MARK-MASQ
      KUBE-SEP-QKKTQK53BDA6D3KX -p tcp -m comment --comment "default/web:tcp-80" -m tcp -j DNAT --to-destination 10.244.1.10:8080
      KUBE-SEP-6ZPCG44EGWBRADAP -s 10.244.2.10/32 -m comment --comment "default/web:tcp-80" -j KUBE-MARK-MASQ
      KUBE-SEP-6ZPCG44EGWBRADAP -p tcp -m comment --comment "default/web:tcp-80" -m tcp -j DNAT --to-destination 10.244.2.10:8080
      KUBE-SVC-WFZ6SSKTBAONFAMD ! -s 10.244.0.0/16 -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
      KUBE-SVC-WFZ6SSKTBAONFAMD -m comment --comment "default/web:tcp-80 -> 10.244.1.10:8080" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-QKKTQK53BDA6D3KX
      KUBE-SVC-WFZ6SSKTBAONFAMD -m comment --comment "default/web:tcp-80 -> 10.244.2.10:8080" -j KUBE-SEP-6ZPCG44EGWBRADAP
      KUBE-SVL-WFZ6SSKTBAONFAMD -m comment --comment "default/web:tcp-80 -> 10.244.1.10:8080" -j KUBE-SEP-QKKTQK53BDA6D3KX
      KUBE-EXT-WFZ6SSKTBAONFAMD -s 10.244.0.0/16 -m comment --comment "pod traffic for default/web:tcp-80 external destinations" -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-EXT-WFZ6SSKTBAONFAMD -m comment --comment "masquerade LOCAL traffic for default/web:tcp-80 external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
      KUBE-EXT-WFZ6SSKTBAONFAMD -m comment --comment "route LOCAL traffic for default/web:tcp-80 external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-EXT-WFZ6SSKTBAONFAMD -j KUBE-SVL-WFZ6SSKTBAONFAMD
      KUBE-FW-WFZ6SSKTBAONFAMD -s 203.0.113.0/24 -m comment --comment "default/web:tcp-80 loadbalancer IP" -j KUBE-EXT-WFZ6SSKTBAONFAMD
      KUBE-FW-WFZ6SSKTBAONFAMD -m comment --comment "other traffic to default/web:tcp-80 will be dropped by KUBE-PROXY-FIREWALL"
      KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 cluster IP" -m tcp --dport 80 -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 192.0.2.1/32 -p tcp -m comment --comment "default/web:tcp-80 loadbalancer IP" -m tcp --dport 80 -j KUBE-FW-WFZ6SSKTBAONFAMD
      KUBE-PROXY-FIREWALL -d 192.0.2.1/32 -p tcp -m comment --comment "default/web:tcp-80 traffic not accepted by KUBE-FW-WFZ6SSKTBAONFAMD" -m tcp --dport 80 -j DROP"
    `)
  })

  test('Local policies without a local endpoint', () => {
    expect(
      linesFor({
        name: 'web',
        externalTrafficToLocal: true,
        internalTrafficToLocal: true,
        ips: { clusterIps: ips('10.96.0.1'), externalIps: ips('198.51.100.1') },
        ports: [tcp(80, { nodePort: 30080, servedFamilies: { v4: true, v6: false } })],
        endpoints: [endpoint('10.244.2.10', { scopes: ['cluster'] })],
      }),
    ).toMatchInlineSnapshot(`
      "KUBE-SEP-6ZPCG44EGWBRADAP -s 10.244.2.10/32 -m comment --comment "default/web:tcp-80" -j KUBE-MARK-MASQ
      KUBE-SEP-6ZPCG44EGWBRADAP -p tcp -m comment --comment "default/web:tcp-80" -m tcp -j DNAT --to-destination 10.244.2.10:8080
      KUBE-SVC-WFZ6SSKTBAONFAMD -m comment --comment "default/web:tcp-80 -> 10.244.2.10:8080" -j KUBE-SEP-6ZPCG44EGWBRADAP
      KUBE-EXT-WFZ6SSKTBAONFAMD -s 10.244.0.0/16 -m comment --comment "pod traffic for default/web:tcp-80 external destinations" -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-EXT-WFZ6SSKTBAONFAMD -m comment --comment "masquerade LOCAL traffic for default/web:tcp-80 external destinations" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ
      KUBE-EXT-WFZ6SSKTBAONFAMD -m comment --comment "route LOCAL traffic for default/web:tcp-80 external destinations" -m addrtype --src-type LOCAL -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-NODEPORTS -p tcp -m comment --comment "default/web:tcp-80" -m tcp --dport 30080 -j KUBE-EXT-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 198.51.100.1/32 -p tcp -m comment --comment "default/web:tcp-80 external IP" -m tcp --dport 80 -j KUBE-EXT-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 has no local endpoints" -m tcp --dport 80 -j DROP
      KUBE-EXTERNAL-SERVICES -d 198.51.100.1/32 -p tcp -m comment --comment "default/web:tcp-80 has no local endpoints" -m tcp --dport 80 -j DROP
      KUBE-EXTERNAL-SERVICES -d 172.30.0.1/32 -m addrtype --dst-type LOCAL -p tcp -m comment --comment "default/web:tcp-80 has no local endpoints" -m tcp --dport 30080 -j DROP"
    `)
  })

  test('no endpoints', () => {
    expect(
      linesFor({
        name: 'web',
        ips: { clusterIps: ips('10.96.0.1'), loadBalancerIps: ips('192.0.2.1') },
        ipFilters: [{ targetIps: ips('192.0.2.1'), sourceRanges: ['203.0.113.0/24'] }],
        ports: [tcp(80, { nodePort: 30080 })],
      }),
    ).toMatchInlineSnapshot(`
      "KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/web:tcp-80 has no endpoints" -m tcp --dport 80 -j REJECT
      KUBE-EXTERNAL-SERVICES -d 192.0.2.1/32 -p tcp -m comment --comment "default/web:tcp-80 has no endpoints" -m tcp --dport 80 -j REJECT
      KUBE-EXTERNAL-SERVICES -d 172.30.0.1/32 -m addrtype --dst-type LOCAL -p tcp -m comment --comment "default/web:tcp-80 has no endpoints" -m tcp --dport 30080 -j REJECT
      KUBE-PROXY-FIREWALL -s 203.0.113.0/24 -d 192.0.2.1/32 -p tcp -m comment --comment "default/web:tcp-80 traffic not accepted" -m tcp --dport 80 -j RETURN
      KUBE-PROXY-FIREWALL -d 192.0.2.1/32 -p tcp -m comment --comment "default/web:tcp-80 traffic not accepted" -m tcp --dport 80 -j DROP"
    `)
  })

  test('source ranges that differ by address need two chains', () => {
    const filter = (ip: string, range: string) => ({ targetIps: ips(ip), sourceRanges: [range] })
    expect(
      linesFor({
        name: 'web',
        ips: { loadBalancerIps: ips('192.0.2.1', '192.0.2.2') },
        ipFilters: [filter('192.0.2.1', '203.0.113.0/24'), filter('192.0.2.2', '0.0.0.0/0')],
        endpoints: [a],
      }),
    ).toMatchInlineSnapshot(`
      "KUBE-SEP-QKKTQK53BDA6D3KX -s 10.244.1.10/32 -m comment --comment "default/web:tcp-80" -j KUBE-MARK-MASQ
      KUBE-SEP-QKKTQK53BDA6D3KX -p tcp -m comment --comment "default/web:tcp-80" -m tcp -j DNAT --to-destination 10.244.1.10:8080
      KUBE-SVC-WFZ6SSKTBAONFAMD -m comment --comment "default/web:tcp-80 -> 10.244.1.10:8080" -j KUBE-SEP-QKKTQK53BDA6D3KX
      KUBE-EXT-WFZ6SSKTBAONFAMD -m comment --comment "masquerade traffic for default/web:tcp-80 external destinations" -j KUBE-MARK-MASQ
      KUBE-EXT-WFZ6SSKTBAONFAMD -j KUBE-SVC-WFZ6SSKTBAONFAMD
      KUBE-FW-WFZ6SSKTBAONFAMD -s 203.0.113.0/24 -m comment --comment "default/web:tcp-80 loadbalancer IP" -j KUBE-EXT-WFZ6SSKTBAONFAMD
      KUBE-FW-WFZ6SSKTBAONFAMD -m comment --comment "other traffic to default/web:tcp-80 will be dropped by KUBE-PROXY-FIREWALL"
      KUBE-FW-QJ2IGSGZB5Q2D5SH -m comment --comment "default/web:tcp-80 loadbalancer IP" -j KUBE-EXT-WFZ6SSKTBAONFAMD
      KUBE-FW-QJ2IGSGZB5Q2D5SH -m comment --comment "other traffic to default/web:tcp-80 will be dropped by KUBE-PROXY-FIREWALL"
      KUBE-SERVICES -d 192.0.2.1/32 -p tcp -m comment --comment "default/web:tcp-80 loadbalancer IP" -m tcp --dport 80 -j KUBE-FW-WFZ6SSKTBAONFAMD
      KUBE-SERVICES -d 192.0.2.2/32 -p tcp -m comment --comment "default/web:tcp-80 loadbalancer IP" -m tcp --dport 80 -j KUBE-FW-QJ2IGSGZB5Q2D5SH
      KUBE-PROXY-FIREWALL -d 192.0.2.1/32 -p tcp -m comment --comment "default/web:tcp-80 traffic not accepted by KUBE-FW-WFZ6SSKTBAONFAMD" -m tcp --dport 80 -j DROP
      KUBE-PROXY-FIREWALL -d 192.0.2.2/32 -p tcp -m comment --comment "default/web:tcp-80 traffic not accepted by KUBE-FW-QJ2IGSGZB5Q2D5SH" -m tcp --dport 80 -j DROP"
    `)
  })

  test('a whole address', () => {
    expect(
      linesFor({ name: 'web', mapIp: true, ips: { clusterIps: ips('10.96.0.1') }, endpoints: [a] }),
    ).toMatchInlineSnapshot(`
      "KUBE-SEP-5I6TXQ6JWHLCR5A4 -s 10.244.1.10/32 -m comment --comment "default/web" -j KUBE-MARK-MASQ
      KUBE-SEP-5I6TXQ6JWHLCR5A4 -m comment --comment "default/web" -j DNAT --to-destination 10.244.1.10
      KUBE-SVC-HATXYT7U2GR24UPA ! -s 10.244.0.0/16 -d 10.96.0.1/32 -m comment --comment "default/web cluster IP" -j KUBE-MARK-MASQ
      KUBE-SVC-HATXYT7U2GR24UPA -m comment --comment "default/web -> 10.244.1.10" -j KUBE-SEP-5I6TXQ6JWHLCR5A4
      KUBE-SERVICES -d 10.96.0.1/32 -m comment --comment "default/web cluster IP" -j KUBE-SVC-HATXYT7U2GR24UPA"
    `)
  })
})
