import { type Deviations, otherPortCells, unallocatedCells } from './deviation.js'

const differences = 'docs/userspace.md#where-it-differs-from-kernel-proxies'

/** kpng's userspace backend: a process stands between client and endpoint, and knows only the ports of Services. */
export const userspace: Deviations = [
  {
    cells: [
      'whole-address/*',
      'whole-address-local/*',
      'whole-address-local-none-here/*',
      'whole-address-no-endpoints/*',
      'whole-address-given/2/*',
      'whole-address-endpoints-change/*',
    ],
    reason: 'a process listens on ports: it cannot have whole addresses, and the log says so',
    link: differences,
    instead: { outcome: 'passed' },
  },
  {
    cells: [
      'sctp/pod-a.*',
      'sctp/node-a.*',
      'sctp/outside-*',
      'sctp-and-tcp/sctp.*',
      'sctp-no-endpoints/pod-a.*',
      'sctp-no-endpoints/node-a.*',
      'sctp-local/*',
      'sctp-local-none-here/*',
      'sctp-affinity/*',
    ],
    reason: 'the process serves no SCTP, and the log says so',
    link: differences,
    instead: { outcome: 'passed' },
  },
  {
    cells: ['sctp/outside.*'],
    reason: 'the process serves no SCTP, and nothing else listens at the node port',
    link: differences,
    instead: { outcome: 'refused' },
  },
  {
    cells: ['proxy-restarted/*/requests*'],
    except: ['proxy-restarted/1/*'],
    reason: 'the process carries the data itself: while it is away, requests fail',
    link: differences,
    instead: { outcome: 'interrupted' },
  },
  {
    cells: ['proxy-restarted/*/open*'],
    except: ['proxy-restarted/1/*'],
    reason: 'the process carries the data itself: connections end with it',
    link: differences,
    instead: { outcome: 'broken' },
  },
  {
    cells: ['proxy-restarted/2/new*', 'proxy-restarted/3/new-from-outside.*'],
    reason: 'nobody listens where the process did',
    link: differences,
    instead: { outcome: 'refused' },
  },
  {
    cells: ['proxy-restarted/3/new.*'],
    reason: 'a process that is stopped takes its rules with it',
    link: differences,
    instead: { outcome: 'passed' },
  },
  {
    cells: ['two-nodes/*/pod-b*', 'two-nodes/*/local-on-b.*', 'two-nodes/*/flow-b.*'],
    except: ['two-nodes/1/pod-b-to-a.*'],
    reason: 'the process on node-b connects to the endpoint itself, so no client keeps its source address',
    link: differences,
    instead: { source: 'any' },
  },
  {
    cells: ['*'],
    except: ['pod-to-pod/*', 'foreign-nat-rules/1/host-port.*', 'foreign-nat-rules/1/earlier-chain.*'],
    expecting: { source: 'kept' },
    reason: 'the process connects to the endpoint itself, so no client keeps its source address',
    link: differences,
    instead: { source: 'node' },
  },
  {
    cells: [...otherPortCells, 'external-ip-is-a-cluster-ip/*-other-port*'],
    reason: 'only the ports of Services are captured; packets to other ports of a cluster IP are routed on',
    link: differences,
    instead: { outcome: 'passed' },
  },
  {
    cells: unallocatedCells,
    reason: 'only the addresses of Services are captured; packets to unallocated cluster IPs are routed on',
    link: differences,
    instead: { outcome: 'passed' },
  },
  {
    cells: [
      'udp-policy-becomes-local/2/node-port.*',
      'udp-policy-becomes-local/2/load-balancer.*',
      'udp-policy-becomes-local/2/external-ip.*',
    ],
    reason: 'a UDP client moves when the policy no longer allows its endpoint',
    link: differences,
    instead: { servers: ['a1'] },
  },
  {
    cells: ['source-ranges-without-node/node-itself.*'],
    reason: "the node's own packets pass the filter; the process then resets the connection instead of dropping it",
    link: differences,
    instead: { outcome: 'broken' },
  },
]

/** With the iptables capture nothing stands before the process, so what is to be dropped is accepted and reset. */
export const userspaceIptables: Deviations = [
  ...userspace,
  {
    cells: [
      'external-local-none-here/outside-load-balancer.*',
      'external-local-none-here/outside-external-ip.*',
      'external-local-none-here/outside-node-port.*',
      'source-ranges/out.*',
      'source-ranges/out-pod.*',
      'source-ranges-and-local/out.*',
      'source-ranges-with-spaces/out.*',
      'source-ranges-changed/2/out.*',
      'two-nodes/2/local-on-a.*',
      'bad-objects/not-in-source-ranges.*',
    ],
    reason: 'the connection is accepted before it is known to be unwanted, and then reset',
    link: differences,
    instead: { outcome: 'broken' },
  },
]
