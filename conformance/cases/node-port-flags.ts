import { addressOf, nodeA, nodePort, secondAddress } from '../addresses.js'
import type { Case } from './case.js'
import { masqueraded, oneStep, refused, tcp, udp } from './cells.js'
import { balanced, both } from './objects.js'

const localhost = { IPv4: '127.0.0.1', IPv6: '::1' } as const

export const nodePortFlagCases: readonly Case[] = [
  oneStep({
    id: 'node-ports-everywhere',
    title: 'Node ports at all addresses of the node; the same ports of other machines are left alone',
    flags: {
      words: ['--nodeport-addresses', '0.0.0.0/0,::/0'],
      knownTo: ['nft', 'iptables', 'ipvs', 'ebpf', 'kube-proxy-nftables', 'kube-proxy-iptables'],
    },
    objects: balanced('node-ports-everywhere', 222, both),
    cells: [
      ['primary', 'outside', tcp(nodeA, nodePort(222)), masqueraded(both), [40]],
      ['second-address', 'outside', tcp(secondAddress, nodePort(222)), masqueraded(both), [40]],
      ['second-address-udp', 'outside', udp(secondAddress, nodePort(222)), masqueraded(both), [40]],
      ['localhost', 'node-a', tcp(localhost, nodePort(222)), refused, [41]],
      // Nobody listens at these machines. They refuse it themselves if the node lets it through.
      ['transit', 'outside', tcp(addressOf['node-b'], nodePort(222)), refused, [40]],
      ['transit-udp', 'outside', udp(addressOf['node-b'], nodePort(222)), refused, [40]],
      ['to-pod', 'outside', tcp(addressOf.a2, nodePort(222)), refused, [40]],
      ['from-pod', 'pod-a', tcp(addressOf['node-b'], nodePort(222)), refused, [40]],
      ['from-node', 'node-a', tcp(addressOf['node-b'], nodePort(222)), refused, [40]],
    ],
  }),
  oneStep({
    id: 'localhost-node-ports',
    title: 'Node ports are not served on localhost',
    objects: balanced('localhost-node-ports', 223, both),
    cells: [
      ['tcp', 'node-a', tcp(localhost, nodePort(223)), refused, [41]],
      ['udp', 'node-a', udp(localhost, nodePort(223)), refused, [41]],
    ],
  }),
  oneStep({
    id: 'localhost-node-ports-off',
    title: 'Node ports are not served on localhost if that is switched off',
    flags: { words: ['--iptables-localhost-nodeports=false'], knownTo: ['iptables', 'kube-proxy-iptables'] },
    objects: balanced('localhost-node-ports-off', 227, both),
    cells: [
      ['tcp', 'node-a', tcp(localhost, nodePort(227)), refused, [41]],
      ['udp', 'node-a', udp(localhost, nodePort(227)), refused, [41]],
      ['node-address', 'node-a', tcp(nodeA, nodePort(227)), masqueraded(both), [41]],
    ],
  }),
]
