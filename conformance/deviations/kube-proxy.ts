import { type Deviations, otherPortCells, unallocatedCells } from './deviation.js'

const github = 'https://github.com/kubernetes'
const migration =
  'https://kubernetes.io/docs/reference/networking/virtual-ips/#migrating-from-iptables-mode-to-nftables'

/** What 1.36 is known to miss in every mode. */
const anyMode: Deviations = [
  {
    cells: ['udp-no-endpoints/2/*'],
    reason: 'kube-proxy before 1.37 leaves UDP flows of a Service that has no endpoints any more',
    link: `${github}/kubernetes/issues/139628`,
    instead: { outcome: 'reached', servers: ['a1'], source: 'any' },
  },
  {
    cells: ['external-ip-is-a-cluster-ip/*-other-port*'],
    reason: 'kube-proxy serves an external IP also if it is the cluster IP of another Service',
    link: `${github}/kubernetes/issues/97076`,
    instead: { outcome: 'reached', servers: ['b1'], source: 'node' },
  },
  {
    // The owner may also keep the port, which the kit then calls unexpectedly right.
    cells: ['external-ip-is-a-cluster-ip/own-port.*'],
    reason:
      'if an external IP is the cluster IP of another Service with the same port, chance decides at each sync of kube-proxy which of them is served',
    link: `${github}/kubernetes/issues/97076`,
    instead: { outcome: 'reached', servers: ['b1'], source: 'node' },
  },
]

/** Where it says how often all rules are written: after a sync that failed, and every hour. */
const nftablesSyncs = `${github}/kubernetes/blob/v1.36.4/pkg/proxy/nftables/proxier.go`
const unwatched =
  'kube-proxy does not watch its nftables rules: it writes all of them again after a sync has failed, or once per hour'

/** The reference, with what it is known to miss. */
export const kubeProxyNftables: Deviations = [
  ...anyMode,
  {
    cells: ['rules-flushed/pod-a.*', 'rules-flushed/node-a.*', 'rules-flushed/load-balancer.*'],
    reason: unwatched,
    link: nftablesSyncs,
    instead: { outcome: 'passed' },
  },
  {
    cells: ['rules-flushed/node-port.*'],
    reason: unwatched,
    link: nftablesSyncs,
    instead: { outcome: 'refused' },
  },
]

/**
 * What follows from iptables mode itself: it knows nothing of addresses that are no Service's, serves node ports at every address, and has rules in
 * two tables.
 */
export const iptablesMode: Deviations = [
  {
    cells: ['*'],
    whileChanging: true,
    reason:
      'rules that refuse and drop are in the table filter, rules that serve in the table nat: the kernel replaces one after the other, and between them a packet is routed on',
    link: 'docs/iptables.md#limits',
    instead: { outcome: 'passed' },
  },
  {
    cells: otherPortCells,
    reason: 'iptables mode has no rule for other ports of a cluster IP: the packet is routed away',
    link: `${github}/kubernetes/issues/22952`,
    instead: { outcome: 'passed' },
  },
  {
    cells: unallocatedCells,
    reason: 'iptables mode does not know the ServiceCIDRs: the packet is routed away',
    link: `${github}/enhancements/pull/4449`,
    instead: { outcome: 'passed' },
  },
  {
    cells: ['node-port/second-address*'],
    reason: "iptables mode serves node ports at all of the node's addresses unless nodePortAddresses says otherwise",
    link: migration,
    instead: { outcome: 'reached', servers: ['a1', 'b1'], source: 'node', hits: 'some' },
  },
  {
    cells: ['node-port/localhost.v4', 'localhost-node-ports/*.v4', 'node-ports-everywhere/localhost.v4'],
    reason: 'iptables mode serves node ports on 127.0.0.1 unless localhostNodePorts is off',
    link: migration,
    instead: { outcome: 'reached', servers: ['a1', 'b1'], source: 'node', hits: 'some' },
  },
]

export const kubeProxyIptables: Deviations = [...anyMode, ...iptablesMode]
