import type { Deviations } from './deviation.js'
import { kubeProxyNftables } from './kube-proxy-nftables.js'

/** kube-proxy's iptables mode: it knows nothing of addresses that are no Service's, and serves node ports at every address. */
export const kubeProxyIptables: Deviations = [
  ...kubeProxyNftables,
  {
    cells: [
      'cluster-ip-other-port/*',
      'node-port/on-cluster-ip.*',
      'port-changed/2/first-port.*',
      'port-changed/1/second-port.*',
      'slice-port-of-another-protocol/pod-a-udp.*',
    ],
    reason: 'iptables mode has no rule for other ports of a cluster IP: the packet is routed away',
    instead: { outcome: 'passed' },
  },
  {
    cells: [
      'unallocated-cluster-ip/*',
      'single-stack-v4/pod-a.v6',
      'single-stack-v6/pod-a.v4',
      'service-gone/2/cluster-ip.*',
    ],
    reason: 'iptables mode does not know the ServiceCIDRs: the packet is routed away',
    instead: { outcome: 'passed' },
  },
  {
    cells: ['node-port/second-address*'],
    reason: "iptables mode serves node ports at all of the node's addresses unless nodePortAddresses says otherwise",
    instead: { outcome: 'reached', servers: ['a1', 'b1'], source: 'node', hits: 'some' },
  },
  {
    cells: ['node-port/localhost.v4'],
    reason: 'iptables mode serves node ports on 127.0.0.1 unless localhostNodePorts is off',
    instead: { outcome: 'reached', servers: ['a1', 'b1'], source: 'node', hits: 'some' },
  },
]
