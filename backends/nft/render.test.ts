import { describe, expect, test } from 'vitest'
import { endpoint, ips, tcp, udp, view } from '../../dataplane/testing/objects.js'
import { renderRuleset } from './render.js'

const elements = (text: string): string => text.slice(text.indexOf('add element'))

describe('the elements of a view', () => {
  test('a service of each kind', () => {
    const pod = endpoint('10.244.1.2 fd00:244::2', { local: true })
    const far = endpoint('10.244.2.3', { scopes: ['internal', 'cluster'] })
    const of = view(
      [
        { name: 'web', ips: { clusterIps: ips('10.96.0.1', 'fd00:96::1') }, ports: [tcp(80)], endpoints: [pod, far] },
        {
          name: 'shop',
          externalTrafficToLocal: true,
          ips: {
            clusterIps: ips('10.96.0.2'),
            loadBalancerIps: ips('192.0.2.1'),
            loadBalancerProxyIps: ips('192.0.2.9'),
          },
          ipFilters: [{ sourceRanges: ['203.0.113.0/24 '] }],
          ports: [tcp(443, { nodePort: 30443 })],
          endpoints: [pod, far],
        },
        { name: 'empty', ips: { externalIps: ips('198.51.100.1') }, ports: [udp(53, { nodePort: 30053 })] },
        {
          name: 'sticky',
          ips: { clusterIps: ips('10.96.0.3') },
          sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 60 } },
          endpoints: [pod],
        },
      ],
      ['10.96.0.0/16'],
    )
    expect(
      elements(renderRuleset(of, { detectLocal: { mode: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } })),
    ).toMatchInlineSnapshot(`
      "add element ip kpng cluster-ips { 10.96.0.2, 10.96.0.3, 10.96.0.1 }
      add element ip kpng external-services { 198.51.100.1 . udp . 53 }
      add element ip kpng local-services { 192.0.2.1 . tcp . 443 }
      add element ip kpng external-node-ports { udp . 30053 }
      add element ip kpng local-node-ports { tcp . 30443 }
      add element ip kpng endpoints { 10.96.0.2 . tcp . 443 . 0 : 10.244.1.2 . 8080, 10.96.0.2 . tcp . 443 . 1 : 10.244.2.3 . 8080, 192.0.2.1 . tcp . 443 . 0 : 10.244.1.2 . 8080, 192.0.2.1 . tcp . 443 . 1 : 10.244.2.3 . 8080, 10.96.0.3 . tcp . 80 . 0 : 10.244.1.2 . 8080, 10.96.0.1 . tcp . 80 . 0 : 10.244.1.2 . 8080, 10.96.0.1 . tcp . 80 . 1 : 10.244.2.3 . 8080 }
      add element ip kpng local-endpoints { 192.0.2.1 . tcp . 443 . 0 : 10.244.1.2 . 8080 }
      add element ip kpng node-port-endpoints { tcp . 30443 . 0 : 10.244.1.2 . 8080, tcp . 30443 . 1 : 10.244.2.3 . 8080 }
      add element ip kpng local-node-port-endpoints { tcp . 30443 . 0 : 10.244.1.2 . 8080 }
      add element ip kpng firewalled { 192.0.2.1 . tcp . 443 }
      add element ip kpng sticky { 10.96.0.3 . tcp . 80 : goto remember-60 }
      add element ip kpng hairpin { 10.244.1.2 . 10.244.1.2 }
      add element ip kpng pods { 10.244.0.0-10.244.255.255 }
      add element ip kpng unmasqueraded { 10.244.0.0-10.244.255.255 }
      add element ip kpng node-port-addresses { 172.30.0.1 }
      add element ip kpng service-cidrs { 10.96.0.0-10.96.255.255 }
      add element ip kpng allowed-24 { 192.0.2.1 . tcp . 443 . 203.0.113.0 }
      add element ip6 kpng cluster-ips { fd00:96::1 }
      add element ip6 kpng external-node-ports { udp . 30053 }
      add element ip6 kpng endpoints { fd00:96::1 . tcp . 80 . 0 : fd00:244::2 . 8080 }
      add element ip6 kpng hairpin { fd00:244::2 . fd00:244::2 }
      add element ip6 kpng unmasqueraded { ::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff }
      add element ip6 kpng node-port-addresses { fd00:30::1 }
      "
    `)
  })

  test('the same view gives the same text, in whatever order it came', () => {
    const a = { name: 'a', ips: { clusterIps: ips('10.96.0.1') }, endpoints: [endpoint('10.0.0.1')] }
    const b = { name: 'b', ips: { clusterIps: ips('10.96.0.2') }, endpoints: [endpoint('10.0.0.1')] }
    expect(renderRuleset(view([a, b]))).toBe(renderRuleset(view([b, a])))
  })
})
