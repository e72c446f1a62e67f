// The same services as rules: a chain a service and a chain an endpoint, as kube-proxy's nftables mode makes them.
import { Buffer } from 'node:buffer'

const text = (ip) => ip.replaceAll('.', '-')

export function chainRuleset(view) {
  const chains = []
  const elements = []
  for (const { service, endpoints } of view.services.values()) {
    const [ip] = service.ips.clusterIps.v4
    const slots = endpoints.map((endpoint, slot) => {
      const [address] = endpoint.ips.v4
      const name = `endpoint-${text(ip)}-${text(address)}`
      chains.push(
        `  chain ${name} {\n    ip saddr ${address} jump to-masquerade\n    meta l4proto udp dnat to ${address}:8080\n  }`,
      )
      return `${slot} : goto ${name}`
    })
    const choice = `numgen random mod ${slots.length} vmap { ${slots.join(', ')} }`
    chains.push(
      `  chain service-${text(ip)} {\n    ip daddr ${ip} udp dport 80 ip saddr != 100.0.0.0/8 jump to-masquerade\n    ${choice}\n  }`,
    )
    elements.push(`${ip} . udp . 80 : goto service-${text(ip)}`)
  }
  const lines = [
    'table ip chains {',
    '  chain to-masquerade {\n    meta mark set meta mark | 0x4000\n  }',
    ...chains,
    `  map service-ips {\n    type ipv4_addr . inet_proto . inet_service : verdict\n    elements = { ${elements.join(', ')} }\n  }`,
    '  map no-endpoints {\n    type ipv4_addr . inet_proto . inet_service : verdict\n  }',
    `  set cluster-ips {\n    type ipv4_addr\n    elements = { ${elements.map((element) => element.split(' ')[0]).join(', ')} }\n  }`,
    '  chain services {\n    ip daddr . meta l4proto . th dport vmap @service-ips\n  }',
    '  chain check {\n    ip daddr . meta l4proto . th dport vmap @no-endpoints\n    ip daddr @cluster-ips reject\n  }',
    '  chain before {\n    type filter hook output priority -110\n    ct state new ip daddr . meta l4proto . th dport vmap @no-endpoints\n  }',
    '  chain to-endpoint {\n    type nat hook output priority -100\n    jump services\n  }',
    '  chain filter-output {\n    type filter hook output priority 0\n    ct state new jump check\n  }',
    '  chain from-node {\n    type nat hook postrouting priority 100\n    meta mark & 0x4000 != 0 meta mark set meta mark ^ 0x4000 masquerade fully-random\n  }',
    '}',
  ]
  return Buffer.from(`${lines.join('\n')}\n`)
}

/** Nothing but what makes the kernel track connections. */
export const emptyRuleset = Buffer.from(
  'table ip empty {\n  chain to-endpoint {\n    type nat hook output priority -100\n  }\n  chain from-node {\n    type nat hook postrouting priority 100\n  }\n}\n',
)
