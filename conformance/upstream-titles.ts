// What the end-to-end tests of Kubernetes 1.36 and 1.37 (test/e2e/network) show of Services, by their titles, and which cases of the kit show the same.

export interface UpstreamTitle {
  /** The file in test/e2e/network. */
  readonly file: string
  readonly title: string
  /** Ids of the cases that show the same. Empty: the kit does not show it, and `elsewhere` says why. */
  readonly cases: readonly string[]
  /** What the cases leave out, or why there is none. */
  readonly elsewhere?: string
}

const apiServer = 'the job of the API server or of a controller, not of a proxy'
const nodeAgent = "not seen in packets to Services: tests of kpng's node agent show it"
const notYet = 'not shown yet'

type Line = readonly [title: string, cases: string, elsewhere?: string]

const service: readonly Line[] = [
  ['should serve a basic endpoint from pods', 'endpoints-come-and-go'],
  ['should serve multiport endpoints from pods', 'several-ports'],
  ['should be updated after adding or deleting ports', 'port-changed'],
  ['should preserve source pod IP for traffic thru service cluster IP', 'cluster-ip'],
  ['should allow pods to hairpin back to themselves through services', 'hairpin'],
  ['should be able to up and down services', 'service-gone'],
  ['should work after the service has been recreated', 'service-gone udp-service-made-again'],
  ['should work after restarting kube-proxy', '', notYet],
  ['should work after restarting apiserver', '', notYet],
  ['should be able to create a functioning NodePort service', 'node-port'],
  [
    'should be possible to connect to a service via ExternalIP when the external IP is not assigned to a node',
    'external-ip',
  ],
  [
    'should be able to update service type to NodePort listening on same port number but different protocols',
    'node-port-protocols',
  ],
  ['should be able to change the type from ExternalName to ClusterIP', 'type-changed'],
  ['should be able to change the type from ExternalName to NodePort', 'type-changed'],
  ['should be able to change the type from ClusterIP to ExternalName', 'type-changed'],
  ['should be able to change the type from NodePort to ExternalName', 'type-changed'],
  ['should prevent NodePort collisions', '', apiServer],
  ['should check NodePort out-of-range', '', apiServer],
  ['should release NodePorts on delete', '', apiServer],
  ['should create endpoints for unready pods', '', apiServer],
  [
    'should be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is true',
    'published-not-ready',
  ],
  [
    'should not be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is false',
    'endpoint-becomes-unready not-ready terminating-not-serving',
  ],
  ['should have session affinity work for service with type clusterIP', 'affinity affinity-connections'],
  ['should have session affinity timeout work for service with type clusterIP', 'affinity-timeout'],
  ['should be able to switch session affinity for service with type clusterIP', 'affinity-switched'],
  ['should have session affinity work for NodePort service', 'affinity'],
  ['should have session affinity timeout work for NodePort service', 'affinity-timeout', 'at the cluster IP'],
  ['should be able to switch session affinity for NodePort service', 'affinity-switched affinity-switched-local'],
  ['should implement service.kubernetes.io/service-proxy-name', 'another-proxy another-proxy-toggled'],
  ['should implement service.kubernetes.io/headless', 'headless-label headless-label-toggled'],
  ['should be rejected when no endpoints exist', 'no-endpoints'],
  ['should be rejected for evicted pods (no endpoints exist)', 'no-endpoints none-ready'],
  ['should respect internalTrafficPolicy=Local Pod to Pod', 'internal-local internal-local-none-here'],
  ['should respect internalTrafficPolicy=Local Pod (hostNetwork: true) to Pod', 'internal-local'],
  [
    'should respect internalTrafficPolicy=Local Pod and Node, to Pod (hostNetwork: true)',
    'internal-local-host-network',
  ],
  [
    'should support externalTrafficPolicy=Local for type=NodePort',
    'external-local external-local-none-here external-local-none-anywhere',
  ],
  ['should fail health check node port if there are only terminating endpoints', '', nodeAgent],
  [
    'should fallback to terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Cluster',
    'terminating-fallback',
  ],
  [
    'should fallback to local terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Local',
    'terminating-internal-local',
  ],
  [
    'should fallback to terminating endpoints when there are no ready endpoints with externallTrafficPolicy=Cluster',
    'terminating-from-outside',
  ],
  [
    'should fallback to local terminating endpoints when there are no ready endpoints with externalTrafficPolicy=Local',
    'terminating-local',
  ],
  ['should find a service from listing all namespaces', '', apiServer],
  ['should complete a service status lifecycle', '', apiServer],
  ['should delete a collection of services', '', apiServer],
  ['should serve endpoints on same port and different protocols', 'several-ports'],
  [
    'should serve endpoints on same port and different protocol for internal traffic on Type LoadBalancer',
    'becomes-load-balancer',
  ],
  ['should allow creating a basic SCTP service with pod and endpoints', 'sctp'],
  [
    'should implement NodePort and HealthCheckNodePort correctly when ExternalTrafficPolicy changes',
    'policy-changed',
    nodeAgent,
  ],
  [
    'should support named targetPorts that resolve to different ports on different endpoints',
    'target-port-per-slice several-slices',
  ],
]

const dualStack: readonly Line[] = [
  ['should create service with ipv4 cluster ip', 'single-stack-v4'],
  ['should create service with ipv6 cluster ip', 'single-stack-v6'],
  ['should create service with ipv4,v6 cluster ip', 'cluster-ip families-differ'],
  ['should create service with ipv6,v4 cluster ip', 'ipv6-first'],
  ['should function for pod-Service: http', 'cluster-ip'],
  ['should function for pod-Service: udp', 'cluster-ip'],
  ['should function for node-Service: http', 'cluster-ip'],
  ['should function for node-Service: udp', 'cluster-ip'],
  ['should function for endpoint-Service: http', 'hairpin'],
  ['should function for endpoint-Service: udp', 'hairpin', 'over TCP'],
  ['should update endpoints: http', 'endpoint-moved endpoints-come-and-go'],
  ['should update endpoints: udp', 'udp-endpoint-moved'],
  ['should function for client IP based session affinity: http', 'affinity'],
  ['should function for client IP based session affinity: udp', 'affinity'],
  ['should be able to handle large requests: http', 'cluster-ip'],
  ['should be able to handle large requests: udp', '', notYet],
  ['should function for service endpoints using hostNetwork', 'host-network-endpoint'],
  ['should function for pod-Service: sctp', 'sctp'],
]

const slicesAndTopology: readonly Line[] = [
  ['should support a Service with multiple ports specified in multiple EndpointSlices', 'several-slices'],
  ['should support a Service with multiple endpoint IPs specified in multiple EndpointSlices', 'several-slices'],
  ['should route traffic to an endpoint in the same zone when using PreferClose', 'zone-hints'],
  ['should route traffic correctly between pods on multiple nodes when using PreferClose', 'zone-hints-elsewhere'],
  ['should route traffic to an endpoint in the same zone when using PreferSameZone', 'zone-hints'],
  ['should route traffic to an endpoint on the same node when using PreferSameNode', 'node-hints'],
  [
    'should route traffic to an endpoint on the same node or fall back to same zone when using PreferSameNode',
    'node-hints-then-zones node-hints-before-zones',
  ],
  [
    'should route traffic to an endpoint on the same node when using PreferSameNode and fall back when the endpoint becomes unavailable',
    'node-hints-fall-back',
  ],
]

const conntrack: readonly Line[] = [
  ['should be able to preserve UDP traffic when server pod cycles for a NodePort service', 'udp-endpoint-moved'],
  [
    'should be able to preserve UDP traffic when server pod cycles for a NodePort service with client hostNetwork',
    'udp-endpoint-moved',
    'with the cluster IP',
  ],
  [
    'should be able to preserve UDP traffic when server pod cycles for a ClusterIP service',
    'udp-endpoint-moved udp-no-endpoints',
  ],
  [
    'should be able to preserve UDP traffic when server pod cycles for a ClusterIP service with InternalTrafficPolicy set to Local',
    'udp-internal-local',
  ],
  [
    'should be able to preserve UDP traffic when initial unready endpoints get ready',
    'udp-sending-before-unready-service udp-endpoint-appears',
  ],
  ['proxy implementation should not be vulnerable to the invalid conntrack state bug', '', notYet],
  [
    'should be able to cleanup conntrack entries when UDP service target port changes for a NodePort service',
    'udp-target-port-changed',
  ],
]

const hostsAndProxies: readonly Line[] = [
  ['validates that there is no conflict between pods with same hostPort but different hostIP and protocol', '', notYet],
  ['should set TCP CLOSE_WAIT timeout', '', nodeAgent],
  ['should update metric for tracking accepted packets destined for localhost nodeports', '', nodeAgent],
  ['should not be very high', '', 'a measurement: bench/'],
]

const loadBalancer: readonly Line[] = [
  ['should be able to change the type and ports of a TCP service', 'becomes-load-balancer'],
  ['should be able to change the type and ports of a UDP service', 'becomes-load-balancer'],
  ['should only allow access from service loadbalancer source ranges', 'source-ranges source-ranges-changed'],
  ['should have session affinity work for LoadBalancer service with Local traffic policy', 'affinity-switched-local'],
  ['should have session affinity work for LoadBalancer service with Cluster traffic policy', 'affinity'],
  [
    'should be able to switch session affinity for LoadBalancer service with Local traffic policy',
    'affinity-switched-local',
  ],
  [
    'should be able to switch session affinity for LoadBalancer service with Cluster traffic policy',
    'affinity-switched',
  ],
  [
    'should be able to create LoadBalancer Service without NodePort and change it',
    'load-balancer-without-node-port node-port-changed',
  ],
  [
    'should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on different nodes',
    'udp-endpoint-moved',
  ],
  [
    'should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on the same nodes',
    'udp-no-endpoints',
  ],
  [
    'should not have connectivity disruption during rolling update with externalTrafficPolicy=Cluster',
    '',
    'disruption is counted by tests of the backends, not by the kit',
  ],
  [
    'should not have connectivity disruption during rolling update with externalTrafficPolicy=Local',
    '',
    'disruption is counted by tests of the backends, not by the kit',
  ],
  ['should work for type=LoadBalancer', 'load-balancer-vip external-local'],
  ['should work for type=NodePort', 'external-local'],
  ['should only target nodes with endpoints', 'external-local-none-here', nodeAgent],
  ['should work from pods', 'external-local'],
]

const networking: readonly Line[] = [
  ['should function for multiple endpoint-Services with same selector', 'same-endpoints'],
  ['should update nodePort: http', 'node-port-changed'],
  ['should update nodePort: udp', 'node-port-protocols'],
  ['should recreate its iptables rules if they are deleted', '', 'tests of the backends show it: drift is repaired'],
  ['should check kube-proxy urls', '', nodeAgent],
]

const others: readonly Line[] = [
  ['should be able to connect from a Pod to a terminating Pod', 'terminating-fallback'],
  ['should be able to connect to other Pod from a terminating Pod', '', 'the job of the pod network'],
  [
    'should provide zero downtime on a Blue Green deployment using Services and Readiness Gates',
    'endpoint-moved',
    'that no request fails meanwhile is counted by tests of the backends',
  ],
  ['Should be able to send traffic between Pods without SNAT', 'pod-to-pod'],
  ['should create Services and serve on different Service CIDRs', 'another-service-cidr'],
  ['should proxy localhost NodePort traffic to backends across nodes', '', notYet],
  ['should honor sessionAffinity=ClientIP for localhost NodePort traffic', '', notYet],
  ['should pull an image from a registry exposed via localhost NodePort', '', 'needs a container runtime'],
]

const files: readonly (readonly [string, readonly Line[]])[] = [
  ['service.go', service],
  ['dual_stack.go', dualStack],
  ['endpointslice.go, traffic_distribution.go', slicesAndTopology],
  ['conntrack.go', conntrack],
  ['hostport.go, kube_proxy.go, service_latency.go', hostsAndProxies],
  ['loadbalancer.go', loadBalancer],
  ['networking.go', networking],
  ['pod_lifecycle.go, no_snat.go, service_cidrs.go, localhost_nodeports.go', others],
]

export const upstreamTitles: readonly UpstreamTitle[] = files.flatMap(([file, lines]) =>
  lines.map(([title, cases, elsewhere]) => ({
    file,
    title,
    cases: cases === '' ? [] : cases.split(' '),
    ...(elsewhere !== undefined && { elsewhere }),
  })),
)
