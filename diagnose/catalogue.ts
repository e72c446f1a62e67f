import type { Level } from '@kpng/api'

/** What a finding with a code always says. */
interface Known {
  readonly level: Level
  /** What is so, as the heading of its documentation. */
  readonly title: string
  readonly why: string
  readonly todo: string
}

/**
 * Every finding that kpng has. A code keeps its meaning for ever; one that is no longer used is not given to something else. S: what this
 * node does with a Service. K: what the objects in Kubernetes say. D: the data plane. N: the
 * node. P: the proxies on it. C: the cluster, and access to it. M: moving from kube-proxy.
 */
export const catalogue = {
  'KPNG-S001': {
    level: 'problem',
    title: 'No endpoint serves a port, and why is not known',
    why: 'Connections are refused. Only the core knows which endpoints exist, and it could not be asked.',
    todo: 'Ask the API server: give explain a kubeconfig.',
  },
  'KPNG-S002': {
    level: 'problem',
    title: 'No EndpointSlice lists an endpoint',
    why: 'Connections are refused, because there is nothing to send them to.',
    todo: 'Look for pods that the selector should match.',
  },
  'KPNG-S003': {
    level: 'problem',
    title: 'No endpoint is ready',
    why: 'Connections are refused, because only ready endpoints get them.',
    todo: 'Find out why the pods are not ready.',
  },
  'KPNG-S004': {
    level: 'problem',
    title: 'No endpoint has the port',
    why: 'Connections to the port are refused. An EndpointSlice lists ports by name and protocol, and neither may differ.',
    todo: 'Make targetPort, port names and protocols of the Service, the pods and the EndpointSlices agree.',
  },
  'KPNG-S005': {
    level: 'problem',
    title: 'No endpoint can be used, for several reasons',
    why: 'Connections are refused.',
    todo: 'Look at each endpoint.',
  },
  'KPNG-S006': {
    level: 'problem',
    title: 'All endpoints have addresses that must not be used',
    why: 'kpng never sends traffic to loopback, link-local, multicast and unspecified addresses: they would lead to the node itself, or nowhere.',
    todo: 'Correct the addresses in the EndpointSlices.',
  },
  'KPNG-S007': {
    level: 'problem',
    title: 'No endpoint has an address of the family',
    why: 'Connections in this family are refused. A proxy does not translate between IPv4 and IPv6.',
    todo: 'Give the pods addresses of the family, or correct ipFamilies of the Service.',
  },
  'KPNG-S008': {
    level: 'note',
    title: 'The traffic policy is Local, and no endpoint is on this node',
    why: 'Such traffic is dropped on this node. That is right on nodes without a pod, if clients are sent to the others.',
    todo: 'Use the address of a node that has a pod, or set the policy to Cluster.',
  },
  'KPNG-S009': {
    level: 'warning',
    title: 'The client is not in loadBalancerSourceRanges',
    why: 'Its connections are dropped, as the Service asks for.',
    todo: 'Add the client to the ranges if it should connect.',
  },
  'KPNG-S010': {
    level: 'problem',
    title: 'An address and port belongs to another Service',
    why: 'The other Service gets the traffic. A cluster IP belongs to its own Service; otherwise the first name wins.',
    todo: 'Give each Service its own address or port. An external IP that is a cluster IP may be an attack (CVE-2020-8554).',
  },
  'KPNG-S011': {
    level: 'problem',
    title: 'The data plane cannot serve the protocol or the kind of address',
    why: 'Packets are left alone, and usually nobody answers.',
    todo: 'Use a backend that can, such as nft.',
  },
  'KPNG-S012': {
    level: 'warning',
    title: 'A part of the Service is not served',
    why: 'Connections to these addresses and endpoints are not translated, although the Service lists them.',
    todo: 'Correct the field that the reason names.',
  },
  'KPNG-S013': {
    level: 'note',
    title: 'Some endpoints get no connections',
    why: 'The others serve all of them.',
    todo: 'Nothing, unless it lasts.',
  },
  'KPNG-S014': {
    level: 'warning',
    title: 'Only terminating endpoints are left',
    why: 'They still serve, and nobody does once they are gone.',
    todo: 'Find out why no pod takes their place.',
  },
  'KPNG-S015': {
    level: 'note',
    title: 'This kpng does not serve the Service',
    why: 'It is not for a Service proxy, or for another one.',
    todo: 'Nothing, if that is wanted.',
  },
  'KPNG-S016': {
    level: 'problem',
    title: 'There is no such Service',
    why: 'Nobody answers.',
    todo: 'Check the name and the namespace.',
  },
  'KPNG-S017': {
    level: 'problem',
    title: 'This kpng serves no such Service, and whether it exists is not known',
    why: 'Headless and ExternalName Services, those of other proxies and those without a cluster IP never reach a proxy.',
    todo: 'Ask the API server.',
  },
  'KPNG-S018': {
    level: 'warning',
    title: 'The Service has no address and port that could be served',
    why: 'There is nothing to connect to.',
    todo: 'Give it a port, or a cluster IP.',
  },
  'KPNG-S019': {
    level: 'problem',
    title: 'No Service has this address and port',
    why: 'Connections do not go through a Service.',
    todo: 'Check the address and the port.',
  },
  'KPNG-K001': {
    level: 'problem',
    title: 'The selector matches no pod',
    why: 'Without pods there are no endpoints.',
    todo: 'Correct spec.selector of the Service, or the labels of the pods.',
  },
  'KPNG-K002': {
    level: 'problem',
    title: 'The selector matches pods of another namespace only',
    why: 'A Service selects pods of its own namespace only.',
    todo: 'Ask for the Service in that namespace, or make it there.',
  },
  'KPNG-K003': {
    level: 'problem',
    title: 'No pod is ready',
    why: 'Only ready pods get connections.',
    todo: 'Look at the events of the pod, and at its readiness probe.',
  },
  'KPNG-K004': {
    level: 'problem',
    title: 'targetPort is a name that no container has',
    why: 'The name is looked up among the named ports of the pods, in upper and lower case as written.',
    todo: 'Write a name that they have, or its number.',
  },
  'KPNG-K005': {
    level: 'warning',
    title: 'targetPort is a number that no container declares',
    why: 'A container may listen on a port that it does not declare. If it does not, connections are refused by the pod.',
    todo: 'Try it with --probe. If it is refused, write the port that the pods listen on.',
  },
  'KPNG-K006': {
    level: 'warning',
    title: 'The Service has no selector, and nobody has written EndpointSlices',
    why: 'Kubernetes makes EndpointSlices for Services with a selector only.',
    todo: 'Write its EndpointSlices, or give it a selector.',
  },
  'KPNG-K007': {
    level: 'warning',
    title: 'The load balancer has no address',
    why: 'No load-balancer controller has given the Service one. It answers on its cluster IPs and node ports only.',
    todo: 'Look at the events of the Service and at the controller, or make it a NodePort Service.',
  },
  'KPNG-K008': {
    level: 'note',
    title: 'NetworkPolicies select the pods',
    why: 'They may keep clients out. A Service proxy neither knows nor enforces them, so this is a possibility and not a verdict.',
    todo: 'If connections hang, see whether they allow the client.',
  },
  'KPNG-K009': {
    level: 'note',
    title: 'Pods that are not ready get connections',
    why: 'publishNotReadyAddresses is set, so Kubernetes calls every endpoint ready.',
    todo: 'Nothing, if that is wanted.',
  },
  'KPNG-D001': {
    level: 'problem',
    title: 'The data plane does not hold what it should',
    why: 'Connections go where the data plane sends them, not where they should. kpng repairs its own rules within about a second.',
    todo: 'If it stays, look for what else changes the rules.',
  },
  'KPNG-D002': {
    level: 'problem',
    title: 'An endpoint does not take connections',
    why: 'A Service proxy cannot repair that.',
    todo: 'Look at the pod, the network plugin and the network policies.',
  },
  'KPNG-N001': {
    level: 'problem',
    title: 'The kernel is too old for the nftables backend',
    why: 'Its rules use expressions that Linux has since 5.9.',
    todo: 'Update the kernel, or use the userspace backend on this node.',
  },
  'KPNG-N002': {
    level: 'problem',
    title: 'The nftables backend cannot work here',
    why: 'kpng to-nft stops at its start with the same message, and serves nothing.',
    todo: 'Load what the kernel lacks. Then check again.',
  },
  'KPNG-N003': {
    level: 'warning',
    title: 'The user may not change the network',
    why: 'A kpng that is started like this cannot write rules, and this check cannot read them.',
    todo: 'Run this check as root, and give kpng the capability (securityContext, or AmbientCapabilities= of a unit).',
  },
  'KPNG-N004': {
    level: 'problem',
    title: 'The node does not forward packets',
    why: 'Connections of pods and from outside never reach a pod through a Service. They hang.',
    todo: 'Switch it on, and keep it on in /etc/sysctl.d.',
  },
  'KPNG-N005': {
    level: 'warning',
    title: 'The kernel checks source addresses strictly',
    why: 'It drops replies that arrive on another interface than the way back uses, as with several networks or a tunnel of the network plugin.',
    todo: 'If connections hang on nodes with several interfaces, use loose checks. The higher value of "all" and of the interface counts.',
  },
  'KPNG-N006': {
    level: 'warning',
    title: 'Bridged packets do not pass the rules',
    why: 'If pods are on a bridge, replies between two pods of this node are not translated back, so a Service with an endpoint on the same node hangs.',
    todo: 'If your network plugin uses a bridge, load the module and switch it on. Otherwise nothing.',
  },
  'KPNG-N007': {
    level: 'note',
    title: 'route_localnet is on',
    why: "kube-proxy's iptables mode sets it for node ports on 127.0.0.1. Without its firewall rules, neighbours can reach programs that listen on 127.0.0.1 only (CVE-2020-8558). kpng needs it in iptables mode only.",
    todo: 'Switch it off once kube-proxy is gone, unless another program needs it.',
  },
  'KPNG-N008': {
    level: 'warning',
    title: 'The table of tracked connections is nearly full',
    why: 'When it is full, the kernel drops the first packet of every new connection on this node.',
    todo: 'Raise the limit (kpng: --conntrack-max-per-core), and find out who opens so many connections.',
  },
  'KPNG-N009': {
    level: 'warning',
    title: 'Few files may be open',
    why: 'A kpng without free file descriptors cannot connect, answer or start a program. The userspace backend needs one for each Service port and connection.',
    todo: 'Raise the limit in the unit or the container runtime.',
  },
  'KPNG-P001': {
    level: 'note',
    title: 'kube-proxy runs here',
    why: 'Only one of kube-proxy and kpng should serve a node.',
    todo: 'To replace kube-proxy node by node, follow docs/replace-kube-proxy.md.',
  },
  'KPNG-P002': {
    level: 'problem',
    title: 'kube-proxy and kpng both run here',
    why: 'The rules that the kernel asks first decide about each new connection. The two disagree whenever one is slower, and kpng cannot have the ports 10249 and 10256.',
    todo: 'Keep one of them on this node. To replace kube-proxy node by node, follow docs/replace-kube-proxy.md.',
  },
  'KPNG-P003': {
    level: 'problem',
    title: 'Two kpng serve the same Services',
    why: 'Each of them writes rules for the same Services, and removes or repairs those of the other.',
    todo: 'Stop all but one, or give each its own --service-proxy-name.',
  },
  'KPNG-P004': {
    level: 'warning',
    title: 'Another program answers on a port of the proxy',
    why: 'kpng serves its health or metrics there, as kube-proxy does, and load balancers ask it.',
    todo: 'Find the program and move it, or give kpng other addresses (--healthz-bind-address, --metrics-bind-address).',
  },
  'KPNG-P005': {
    level: 'note',
    title: 'A socket is left of a kpng',
    why: 'A kpng that was killed leaves its socket behind.',
    todo: 'Nothing, if no kpng should run here. The next start removes the socket.',
  },
  'KPNG-P006': {
    level: 'problem',
    title: 'The last sync of a kpng failed',
    why: 'Changes of Services do not reach the data plane.',
    todo: 'Read its status and its log. kpng tries again by itself.',
  },
  'KPNG-P007': {
    level: 'warning',
    title: 'The state of a kpng is not up to date',
    why: 'It serves the last state that it has. New endpoints are not used, and old ones still are.',
    todo: 'Look at the connection to the API server or core.',
  },
  'KPNG-P008': {
    level: 'warning',
    title: 'Rules of kube-proxy are left',
    why: 'Nobody keeps them up to date. They send connections to pods that are gone, and refuse Services that had no endpoints then.',
    todo: 'Remove them when kpng serves this node. Look at the commands first.',
  },
  'KPNG-P009': {
    level: 'warning',
    title: 'Both variants of iptables have rules',
    why: 'The kernel uses both, in an order that is hard to predict, and iptables shows only one. A rule that accepts or drops in the one is invisible in the other.',
    todo: 'Find out who writes the variant that the node does not use by default, and move it.',
  },
  'KPNG-C001': {
    level: 'problem',
    title: 'The API server cannot be asked',
    why: 'kpng serves the last state that it has, and no change arrives. A kpng that starts now serves nothing.',
    todo: 'Check the address, the network and the credentials.',
  },
  'KPNG-C002': {
    level: 'warning',
    title: 'The API server is too old',
    why: 'Fields and resources that kpng relies on may be missing.',
    todo: 'Update the cluster, or stay with its own kube-proxy.',
  },
  'KPNG-C003': {
    level: 'warning',
    title: 'The clocks differ',
    why: 'Certificates and tokens are refused when clocks differ by minutes, and measured delays are wrong.',
    todo: 'Synchronize the clock.',
  },
  'KPNG-C007': {
    level: 'warning',
    title: 'EndpointSlices belong to no Service',
    why: 'No proxy uses them. Usually a label kubernetes.io/service-name is missing or misspelled, or a Service was deleted and its hand-written slices were not.',
    todo: 'Correct the label, or delete the slices.',
  },
  'KPNG-C008': {
    level: 'warning',
    title: 'Objects are skipped, completely or in part',
    why: 'kpng cannot use these fields, and leaves them out. The rest of the object is served.',
    todo: 'Correct the fields. Servers validate them, so look for what wrote them past the validation.',
  },
  'KPNG-M001': {
    level: 'warning',
    title: 'Node ports no longer answer on 127.0.0.1',
    why: "Only kube-proxy's iptables mode serves node ports on localhost. Whether a program on a node uses that cannot be seen from here.",
    todo: 'Before you switch, look for connections to 127.0.0.1 and a node port on each node, and ask those programs to use the node address. Registries that containerd pulls from are the usual case.',
  },
  'KPNG-M002': {
    level: 'warning',
    title: 'Node ports answer on fewer addresses',
    why: 'Without nodePortAddresses, the iptables and ipvs modes of kube-proxy serve node ports on every address of a node. kpng serves them where the nftables mode of kube-proxy does.',
    todo: 'If clients or load balancers use other addresses, set nodePortAddresses to their ranges before you switch.',
  },
  'KPNG-M003': {
    level: 'warning',
    title: 'Firewall rules depend on chains of kube-proxy',
    why: 'These chains stay empty, or go, with kube-proxy. Then the rules do nothing, or cannot be loaded at the next boot.',
    todo: "Write the rules without kube-proxy's chains. kpng has tables of its own, which other rules need not know.",
  },
  'KPNG-M004': {
    level: 'problem',
    title: 'The policy of the chain FORWARD is DROP',
    why: 'The iptables and ipvs modes of kube-proxy accept Service traffic in KUBE-FORWARD. This goes with kube-proxy, and forwarded connections hang then.',
    todo: "Accept your pods' range before you switch.",
  },
  'KPNG-M005': {
    level: 'warning',
    title: 'A scheduler of IPVS is set',
    why: "Schedulers such as lc or sh spread load by open connections or by source address. Only kpng's ipvs backend has them.",
    todo: 'Use to-ipvs. Or, with to-nft: set sessionAffinity: ClientIP where clients must stay with one endpoint, and compare the load of pods after the switch.',
  },
  'KPNG-M006': {
    level: 'warning',
    title: 'Timeouts of IPVS are set',
    why: 'Idle connections end by the timeouts of connection tracking instead.',
    todo: 'Use to-ipvs. Or, with to-nft: set the matching timeouts of conntrack.',
  },
  'KPNG-M007': {
    level: 'warning',
    title: 'Connections in IPVS end',
    why: "They live in IPVS, not in connection tracking. Only kpng's ipvs backend continues them: it takes over kube-ipvs0 and the virtual servers.",
    todo: 'Use to-ipvs. Or, with another backend: drain each node before you clean up, or wait until its connections have ended.',
  },
  'KPNG-C004': {
    level: 'problem',
    title: 'A certificate has ended',
    why: 'Without valid certificates kpng and its peers refuse to talk to each other.',
    todo: 'Renew it. kpng reads the file again by itself.',
  },
  'KPNG-C005': {
    level: 'problem',
    title: 'A certificate is not valid yet',
    why: 'Without valid certificates kpng and its peers refuse to talk to each other.',
    todo: "Check this machine's clock.",
  },
  'KPNG-C006': {
    level: 'warning',
    title: 'A certificate ends soon',
    why: 'Without valid certificates kpng and its peers refuse to talk to each other.',
    todo: 'Renew it. kpng reads the file again by itself.',
  },
  'KPNG-C009': {
    level: 'note',
    title: 'A field or an annotation is better not used',
    why: 'It is deprecated, or does something else than its name says.',
    todo: 'Use what took its place.',
  },
  'KPNG-C010': {
    level: 'problem',
    title: 'Rights are missing that kpng needs',
    why: 'kpng cannot see what it should serve.',
    todo: "If these are kpng's own credentials, apply its ClusterRole. With your own, ask for kpng's account instead.",
  },
  'KPNG-C011': {
    level: 'warning',
    title: 'Rights are missing that kpng can do without',
    why: 'kpng works without them: it posts no Events, and it does not refuse unused cluster IPs.',
    todo: "If these are kpng's own credentials, apply its ClusterRole. With your own, ask for kpng's account instead.",
  },
} as const satisfies Readonly<Record<string, Known>>

export type Code = keyof typeof catalogue
