import { describe, expect, test } from 'vitest'
import { endpoint, ips, type TestService, tcp, udp, view } from '../../dataplane/testing/objects.js'
import { type IpvsOptions, renderState, schedulerAnnotation } from './index.js'
import { Marks, namesOf } from './names.js'

// What the main cases need in the kernel: virtual servers, addresses, and elements of the constant rules.

const options: IpvsOptions = {
  detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] },
  nodePortAddresses: ['all'],
  ipv6: false,
}

const a = endpoint('10.244.1.10', { local: true })
const b = endpoint('10.244.2.10')
/** How an endpoint of another node looks under externalTrafficPolicy Local. */
const elsewhere = endpoint('10.244.2.10', { scopes: ['internal', 'cluster'] })

/** Without the rules themselves, which are the same for every Service. */
function contentFor(service: TestService, given: IpvsOptions = {}): string {
  const [text = ''] = renderState(view([service]), { ...options, ...given }).split('  chain ')
  const sets = [...text.matchAll(/(?:set|map) (\S+) \{\n[^}]*?elements = \{ ([^}]*) \}/g)]
  const elements = sets.map(([, name, list = '']) => `${name}: ${list.replace(/\s*\n\s*/g, ' ')}`)
  return [text.slice(0, text.indexOf('table ')).trimEnd(), ...elements].join('\n')
}

test('a cluster IP', () => {
  expect(contentFor({ name: 'web', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [a, b] })).toMatchInlineSnapshot(`
    "virtual server 10.96.0.1:80/tcp rr
      -> 10.244.1.10:8080
      -> 10.244.2.10:8080
    address 10.96.0.1 on kube-ipvs0
    servers: 10.96.0.1 . tcp . 80
    masquerade-others: 10.96.0.1 . tcp . 80
    addresses: 10.96.0.1
    hairpin: 10.244.1.10 . 10.244.1.10"
  `)
})

test('session affinity, a scheduler by annotation, UDP', () => {
  const service = {
    ...{ name: 'dns', ips: { clusterIps: ips('10.96.0.10') }, ports: [udp(53)], endpoints: [b] },
    annotations: { [schedulerAnnotation]: 'mh' },
    sessionAffinity: { case: 'clientIp' as const, value: { timeoutSeconds: 60 } },
  }
  expect(contentFor(service as unknown as TestService)).toMatchInlineSnapshot(`
    "virtual server 10.96.0.10:53/udp mh persistent 60 s
      -> 10.244.2.10:8080
    address 10.96.0.10 on kube-ipvs0
    servers: 10.96.0.10 . udp . 53
    masquerade-others: 10.96.0.10 . udp . 53
    addresses: 10.96.0.10"
  `)
})

test('no endpoints at all: refused; none here under a Local policy: dropped', () => {
  const empty = { name: 'empty', ips: { clusterIps: ips('10.96.0.2') } }
  expect(contentFor(empty)).toMatchInlineSnapshot(`
    "virtual server 10.96.0.2:80/tcp rr
    address 10.96.0.2 on kube-ipvs0
    servers: 10.96.0.2 . tcp . 80
    refused-inside: 10.96.0.2 . tcp . 80 : goto refuse
    refused-outside: 10.96.0.2 . tcp . 80 : goto refuse
    masquerade-others: 10.96.0.2 . tcp . 80
    addresses: 10.96.0.2"
  `)
  const notHere = { internalTrafficToLocal: true, ports: [tcp(80, { servedFamilies: { v4: true, v6: false } })] }
  expect(contentFor({ ...empty, ...notHere })).toMatchInlineSnapshot(`
    "virtual server 10.96.0.2:80/tcp rr
    address 10.96.0.2 on kube-ipvs0
    servers: 10.96.0.2 . tcp . 80
    refused-inside: 10.96.0.2 . tcp . 80 : drop
    refused-outside: 10.96.0.2 . tcp . 80 : drop
    masquerade-others: 10.96.0.2 . tcp . 80
    addresses: 10.96.0.2"
  `)
})

test('source ranges with every address restrict nobody', () => {
  const service: TestService = {
    ...{ name: 'shop', type: 'LoadBalancer', endpoints: [a] },
    ips: { clusterIps: ips('10.96.0.5'), loadBalancerIps: ips('192.0.2.5') },
    ipFilters: [{ sourceRanges: ['203.0.113.0/24', '0.0.0.0/0'] }],
  }
  expect(contentFor(service)).not.toMatch(/restricted|allowed/)
})

test('externalTrafficPolicy Local: a mark leads pods and the node to the endpoints of other nodes', () => {
  const service: TestService = {
    ...{ name: 'shop', type: 'LoadBalancer', externalTrafficToLocal: true, endpoints: [a, elsewhere] },
    ips: { clusterIps: ips('10.96.0.5'), loadBalancerIps: ips('192.0.2.5') },
    ports: [tcp(80, { nodePort: 30_080 })],
    ipFilters: [{ sourceRanges: ['203.0.113.0/24'] }],
  }
  expect(contentFor(service)).toMatchInlineSnapshot(`
    "virtual server 10.96.0.5:80/tcp rr
      -> 10.244.1.10:8080
      -> 10.244.2.10:8080
    virtual server 192.0.2.5:80/tcp rr
      -> 10.244.1.10:8080
    virtual server IPv4 mark 0x4b791a99 rr
      -> 10.244.1.10:8080
      -> 10.244.2.10:8080
    virtual server 172.30.0.1:30080/tcp rr
      -> 10.244.1.10:8080
    virtual server IPv4 mark 0x4b3b02d9 rr
      -> 10.244.1.10:8080
      -> 10.244.2.10:8080
    address 10.96.0.5 on kube-ipvs0
    address 192.0.2.5 on kube-ipvs0
    allowed-24: 192.0.2.5 . tcp . 80 . 203.0.113.0
    servers: 10.96.0.5 . tcp . 80, 192.0.2.5 . tcp . 80, 172.30.0.1 . tcp . 30080
    marks-inside: 192.0.2.5 . tcp . 80 : 0x4b791a99, 172.30.0.1 . tcp . 30080 : 0x4b3b02d9
    restricted: 192.0.2.5 . tcp . 80
    masquerade-others: 10.96.0.5 . tcp . 80
    addresses: 10.96.0.5, 192.0.2.5
    hairpin: 10.244.1.10 . 10.244.1.10"
  `)
})

test('a whole address', () => {
  const service: TestService = { name: 'all', mapIp: true, ips: { externalIps: ips('198.51.100.7') }, endpoints: [b] }
  expect(contentFor(service)).toMatchInlineSnapshot(`
    "virtual server IPv4 mark 0x4bb20c19 rr
      -> 10.244.2.10
    virtual server IPv4 mark 0x4bcf2c41 rr
      -> 10.244.2.10
    virtual server IPv4 mark 0x4b9e1167 rr
      -> 10.244.2.10
    address 198.51.100.7 on kube-ipvs0
    whole-servers: 198.51.100.7 . tcp, 198.51.100.7 . udp, 198.51.100.7 . sctp
    whole-marks-inside: 198.51.100.7 . tcp : 0x4bb20c19, 198.51.100.7 . udp : 0x4bcf2c41, 198.51.100.7 . sctp : 0x4b9e1167
    whole-marks-outside: 198.51.100.7 . tcp : 0x4bb20c19, 198.51.100.7 . udp : 0x4bcf2c41, 198.51.100.7 . sctp : 0x4b9e1167
    addresses: 198.51.100.7"
  `)
})

test('the rules', () => {
  const text = renderState(view([], ['10.96.0.0/16']), options)
  expect(text.slice(text.indexOf('  chain '))).toMatchInlineSnapshot(`
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
      chain from-pods {
        ct state new ip daddr . meta l4proto . th dport @masquerade-all meta mark set meta mark | 0x4000
        ct state new ip daddr . meta l4proto . th dport vmap @refused-inside
        meta mark set ip daddr . meta l4proto . th dport map @marks-inside
      }
      chain from-network {
        ct state new ip daddr . meta l4proto . th dport @restricted jump check-source
        ip saddr 10.244.0.0/16 goto from-pods
        ct state new ip daddr . meta l4proto . th dport @masquerade-all meta mark set meta mark | 0x4000
        ct state new ip daddr . meta l4proto . th dport @masquerade-others meta mark set meta mark | 0x4000
        ct state new ip daddr . meta l4proto . th dport vmap @refused-outside
        meta mark set ip daddr . meta l4proto . th dport map @marks-outside
      }
      chain from-node {
        ct state new ip daddr . meta l4proto . th dport @restricted jump check-source
        ct state new meta mark set meta mark | 0x4000
        ct state new ip daddr . meta l4proto . th dport vmap @refused-inside
        meta mark set ip daddr . meta l4proto . th dport map @marks-inside
      }
      chain whole-check-source {
        ip daddr . meta l4proto . ip saddr @whole-allowed-32 return
        ip daddr . meta l4proto . ip saddr & 255.255.255.240 @whole-allowed-28 return
        ip daddr . meta l4proto . ip saddr & 255.255.255.0 @whole-allowed-24 return
        ip daddr . meta l4proto . ip saddr & 255.255.240.0 @whole-allowed-20 return
        ip daddr . meta l4proto . ip saddr & 255.255.0.0 @whole-allowed-16 return
        ip daddr . meta l4proto . ip saddr & 255.240.0.0 @whole-allowed-12 return
        ip daddr . meta l4proto . ip saddr & 255.0.0.0 @whole-allowed-8 return
        ip daddr . meta l4proto . ip saddr & 240.0.0.0 @whole-allowed-4 return
        drop
      }
      chain whole-from-pods {
        ct state new ip daddr . meta l4proto vmap @whole-refused-inside
        meta mark set ip daddr . meta l4proto map @whole-marks-inside
      }
      chain whole-from-network {
        ct state new ip daddr . meta l4proto @whole-restricted jump whole-check-source
        ip saddr 10.244.0.0/16 goto whole-from-pods
        ct state new ip daddr . meta l4proto vmap @whole-refused-outside
        meta mark set ip daddr . meta l4proto map @whole-marks-outside
      }
      chain whole-from-node {
        ct state new ip daddr . meta l4proto @whole-restricted jump whole-check-source
        ct state new ip daddr . meta l4proto vmap @whole-refused-inside
        meta mark set ip daddr . meta l4proto map @whole-marks-inside
      }
      chain other-ports {
        ip daddr . meta l4proto @whole-servers goto whole-from-network
        meta l4proto { tcp, udp, sctp } ct state new goto refuse
      }
      chain other-ports-from-node {
        ip daddr . meta l4proto @whole-servers goto whole-from-node
        meta l4proto { tcp, udp, sctp } ct state new goto refuse
      }
      chain input {
        type filter hook input priority 97; policy accept;
        ip daddr . meta l4proto . th dport @servers goto from-network
        ip daddr @addresses goto other-ports
      }
      chain output {
        type filter hook output priority -99; policy accept;
        ip daddr . meta l4proto . th dport @servers goto from-node
        ip daddr @addresses goto other-ports-from-node
        ip daddr 10.96.0.0/16 ct state new fib daddr type != local drop
      }
      chain forward {
        type filter hook forward priority 0; policy accept;
        ip daddr 10.96.0.0/16 ct state new drop
      }
      chain postrouting {
        type nat hook postrouting priority 100; policy accept;
        meta mark & 0xff000000 == 0x4b000000 goto postrouting-marked
        meta mark & 0x4000 == 0x4000 meta mark set meta mark ^ 0x4000 masquerade fully-random
        ip saddr . ip daddr @hairpin masquerade fully-random
      }
      chain postrouting-marked {
        meta mark & 0x800000 == 0x800000 masquerade fully-random
        fib saddr type local masquerade fully-random
        ip saddr . ip daddr @hairpin masquerade fully-random
      }
      chain clear-marks {
        type filter hook postrouting priority 101; policy accept;
        meta mark & 0xff000000 == 0x4b000000 meta mark set 0
      }
    }
    "
  `)
})

describe('names', () => {
  test('the main kpng has the interface of kube-proxy; others have interfaces of their own, of 15 characters at most', () => {
    expect(namesOf('kpng')).toEqual({ interfaceName: 'kube-ipvs0', tableName: 'kpng-ipvs' })
    expect(namesOf('edge')).toEqual({ interfaceName: 'kpng-edge', tableName: 'kpng-ipvs-edge' })
    const { interfaceName } = namesOf('a-very-long-name-of-a-proxier')
    expect(interfaceName).toMatch(/^kpng-[0-9a-f]{6}$/)
  })

  test('marks: each once, the same after a restart, and without the bits of kube-proxy and the kubelet', () => {
    const marks = new Marks()
    const given = Array.from({ length: 5000 }, (_, index) => marks.of(`service ${index}`))
    expect(new Set(given).size).toBe(given.length)
    for (const mark of given) expect(((mark & 0xff80c000) >>> 0).toString(16)).toBe('4b000000')
    expect(new Marks().of('service 7')).toBe(marks.of('service 7'))
    marks.release('service 7')
    expect(marks.of('service 7')).toBe(given[7])
  })
})
