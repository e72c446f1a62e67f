import type { Finding, Level } from '@kpng/api'

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
 * node does with a Service. K: what the objects in Kubernetes say. D: the data plane.
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
} as const satisfies Readonly<Record<string, Known>>

export type Code = keyof typeof catalogue

/** A finding of the catalogue. @param more what this case says more exactly */
export function found(
  code: Code,
  what: string,
  more: Partial<Pick<Finding, 'level' | 'why' | 'todo' | 'command' | 'examples' | 'more'>> = {},
): Finding {
  const { level, why, todo } = catalogue[code]
  return { code, level, what, why, todo, ...more }
}

const order: readonly Level[] = ['problem', 'warning', 'note']

/** The worst findings first; otherwise in the order in which they were found. */
export const byLevel = <T extends Pick<Finding, 'level'>>(findings: readonly T[]): T[] =>
  order.flatMap((level) => findings.filter((finding) => finding.level === level))

/** Whether something does not work, or only in part. */
export const needsAction = ({ level }: Pick<Finding, 'level'>): boolean => level !== 'note'

/** `1 Service`, `2 Services` */
export const counted = (count: number, singular: string, plural = `${singular}s`): string =>
  `${count} ${count === 1 ? singular : plural}`

/** A word of a shell command. Names in Kubernetes need no quotes; what a file says may. */
export const word = (text: string): string =>
  /^[\w./=:,@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** The namespace and the name of a Service, as words of a shell command. */
export function namesOf(service: string): readonly [namespace: string, name: string] {
  const at = service.indexOf('/')
  return [word(service.slice(0, at)), word(service.slice(at + 1))]
}
