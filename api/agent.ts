// What a kpng says about itself and about Services: the types of the agent API, of `kpng explain` and of the dashboard.
// They are versioned by the path of the API (/v1): fields are only ever added, except where `schemaVersion` says otherwise.

import type { Diagnosis, Known, KubernetesFacts, Verdict } from './diagnosis.js'

/** For which traffic a node uses an endpoint: to cluster IPs; from outside to other addresses; from inside to those. */
export type EndpointScope = 'internal' | 'external' | 'cluster'

/** Why a node does not use an endpoint. */
export type EndpointReason = keyof typeof endpointReasons

/** The reasons as sentences that follow "it is not used because". */
export const endpointReasons = {
  'not-ready': 'it is not ready',
  terminating: 'it is terminating, and others are ready',
  'hints-other-node': 'its hints are for other nodes, and this node has endpoints of its own',
  'hints-other-zone': 'its hints are for other zones',
  'not-local': 'the traffic policy is Local, and it is on another node',
  duplicate: 'the same address is in another EndpointSlice, and that one counts',
  'no-port': "it has none of the Service's ports: their names or protocols differ",
  'other-family': 'the Service has no address of its family here',
  'unusable-address': 'such an address must not be used',
  'not-served': 'no address of the Service is served here',
} as const

/** An endpoint of a Service, and what one node uses it for. */
export interface EndpointAnswer {
  /** Its addresses. */
  readonly ips: readonly string[]
  /** The numbers under which it serves the Service's ports. Empty: it serves none. */
  readonly ports: readonly number[]
  /** Empty if it is not a pod. */
  readonly pod: string
  /** Empty if nobody knows. */
  readonly node: string
  /** Empty if nobody knows. */
  readonly zone: string
  /** The EndpointSlice, or what else the source has it from. */
  readonly slice: string
  /** As its EndpointSlice says. */
  readonly ready: boolean
  /** As its EndpointSlice says. */
  readonly serving: boolean
  /** As its EndpointSlice says. */
  readonly terminating: boolean
  /** Whether it is on the node that was asked about. */
  readonly isLocal: boolean
  /** Empty: it is not used, and `reason` says why. */
  readonly scopes: readonly EndpointScope[]
  /** Missing if it is used. */
  readonly reason?: EndpointReason
  /** The reason in a few words: `not ready`. Missing in the answer of a core. */
  readonly why?: string
}

/** What the core knows about one Service and one node. */
export interface ServiceAnswer {
  /** `namespace/name` */
  readonly service: string
  /** Whether kpng has it. A Service that exists in Kubernetes may be missing here: see `notServed`. */
  readonly isKnown: boolean
  /** Services with a similar name, if this one is not known. */
  readonly nearest: readonly string[]
  /** All of them, used or not. */
  readonly endpoints: readonly EndpointAnswer[]
  /** What the objects in Kubernetes say, or why the core does not know it. Missing: the core did not look. */
  readonly kubernetes?: Known<KubernetesFacts>
}

/** Who asks. An address stands for itself. */
export type ClientKind = 'pod' | 'node' | 'outside'

/** What happens to a connection. `elsewhere`: another Service has the address, and gets it. */
export type RouteOutcome = 'endpoint' | 'refused' | 'dropped' | 'reset' | 'passed' | 'elsewhere'

/** What one kind of client gets at one address and port of a Service. */
export interface RouteAnswer {
  /** Who connects: an address, or a kind of client in words. */
  readonly from: string
  /** `reset`: the connection is accepted and then reset. `passed`: kpng leaves the packet alone. */
  readonly outcome: RouteOutcome
  /** Whose address the endpoint sees. `either`: the node's if the client is the endpoint itself. Missing if it reaches none. */
  readonly endpointSees?: 'client' | 'node' | 'either'
  /** The same for people, with the reason. */
  readonly sentence: string
  /** `10.244.1.5:8080`. Each is chosen with the same probability. */
  readonly endpoints: readonly string[]
}

/** An address and port of a Service, or a node port. */
export interface FrontendAnswer {
  /** `10.96.0.10:80/tcp`, `IPv4 node port 30080/tcp` */
  readonly id: string
  /** As people call it: `cluster IP`, `node port`. */
  readonly kind: string
  /** `any`: the Service has the whole address. Missing in older versions. */
  readonly protocol?: 'tcp' | 'udp' | 'sctp' | 'any'
  /** `namespace/name` */
  readonly service: string
  /** The name of the Service's port; empty if it has none. */
  readonly portName: string
  /** One per kind of client that was asked about. */
  readonly routes: readonly RouteAnswer[]
  /** What is special about it, as sentences: session affinity, source ranges. */
  readonly notes: readonly string[]
  /** Connections and UDP flows that exist now, by endpoint, from conntrack. Missing if it was not looked at, or cannot be. */
  readonly flows?: readonly { readonly endpoint: string; readonly count: number }[]
  /** What the data plane really holds. Missing if it was not read back. */
  readonly held?: HeldAnswer
}

/** What a data plane holds for a frontend, compared with what it should hold. */
export interface HeldAnswer {
  /** Whose rules were read, if not those of the kpng that serves the node: `kube-proxy (nftables)`. */
  readonly holder?: string
  /** Whether it holds exactly what it should. */
  readonly isRight: boolean
  /** The differences, as sentences. */
  readonly differences: readonly string[]
  /** Clients that session affinity remembers, and their endpoints. */
  readonly sessionAffinity?: readonly { readonly client: string; readonly endpoint: string }[]
  /** Connections since the frontend was made. */
  readonly connections?: number
}

/** What a TCP connection to an endpoint showed. */
export interface ProbeAnswer {
  /** `10.244.1.5:8080` */
  readonly endpoint: string
  /** `unreachable`: there is no way to it, or the connection could not be opened. */
  readonly result: 'connected' | 'refused' | 'no-answer' | 'unreachable'
  /** The same for people. */
  readonly sentence: string
}

/** The answer to "where does this connection go, and why?", or to "does this Service work?". */
export interface Explanation {
  /** See `schemaVersion`. */
  readonly schemaVersion: number
  /** The node that the answer is about. */
  readonly node: string
  /** Who gave it: `the agent of worker-1, by its socket`. Missing: the agent that sends this. */
  readonly asked?: string
  /** What was asked, in its full form. */
  readonly question: string
  /** The answer: the same as on every other surface. Its `service` is empty if no Service is concerned. */
  readonly diagnosis: Diagnosis
  /** Whether all who were asked about reach an endpoint, and nothing else needs to be done. */
  readonly works: boolean
  /** The addresses and ports that were asked about. Empty if none matches. */
  readonly frontends: readonly FrontendAnswer[]
  /** What happens to a connection to an address and port that no Service has. Missing if a Service has them: its frontends say it. */
  readonly outcome?: RouteOutcome
  /** Missing if the core could not be asked, or no Service is concerned. */
  readonly service?: ServiceAnswer
  /** TCP connections to the endpoints, from the machine where the question was asked. Missing unless that was asked for. */
  readonly probes?: readonly ProbeAnswer[]
  /** How many endpoints `probes` leaves out: those above its limit. */
  readonly probesLeftOut?: number
}

/** GET /v1/status */
export interface AgentStatus {
  /** Of kpng. */
  readonly version: string
  /** The name of the node. */
  readonly node: string
  /** `node`: it serves this node. `core`: it serves other nodes. */
  readonly role: 'node' | 'core'
  /** As users name it: `nftables`. Missing in a core. */
  readonly backend?: string
  /** What the backend can do: see BackendFeatures. */
  readonly features?: Readonly<Record<string, unknown>>
  /** ISO times, here and below. */
  readonly startedAt: string
  /** The agent's clock. */
  readonly now: string
  /** Missing if the source watches nothing, such as a file. */
  readonly source?: SourceStatusAnswer
  /** Missing before the first sync. */
  readonly lastSync?: SyncAnswer
  /** Syncs of the data plane so far. */
  readonly syncs: number
  /** Those that failed. Each is tried again. */
  readonly failedSyncs: number
  /** Syncs of everything: at the start, after a failure, and when somebody else changed the data plane. */
  readonly fullSyncs: number
  /** Services that this node knows. */
  readonly services: number
  /** Endpoints that this node uses. */
  readonly endpoints: number
  /** Addresses and ports that are served. */
  readonly frontends: number
  /** Objects that the source could not use, completely or in part. */
  readonly skippedObjects: number
  /** What of Services is not served. At most 20. */
  readonly problems: readonly {
    readonly service: string
    /** What is not served, such as `conflict` or `loopback-endpoint`: see ProblemKind. Missing in older versions. */
    readonly kind?: string
    /** The same as a sentence. */
    readonly problem: string
  }[]
  /** How many Services have which verdict. Missing in the stream, whose rows say it. */
  readonly verdicts?: Readonly<Partial<Record<Verdict, number>>>
  /** Another program changed the data plane, and no sync has repaired it yet. Missing: that is not known to be so. */
  readonly drift?: { readonly noticedAt: string; readonly reason: string }
  /** In a playground only: commands that can be pasted into a shell as they are, and what they do. */
  readonly hints?: readonly { readonly command: string; readonly effect: string }[]
  /** Of a core only. Its counts are those of the whole cluster, and it has no syncs and frontends of its own. */
  readonly core?: {
    /** Whether the state is complete. */
    readonly synced: boolean
    /** Counts the changes of the state. */
    readonly revision: number
    /** Those that are served now: `local` are nodes, `global` are relays. */
    readonly watchers: Readonly<Record<string, number>>
    /** The node that was asked about with `?node=`: services, endpoints and frontends are what it is served. */
    readonly asNode?: string
  }
}

/** How up to date the state is. */
export interface SourceStatusAnswer {
  /** Whether the state may be out of date. */
  readonly stale: boolean
  /** What is stale, and since when. */
  readonly reason?: string
  /** When the state was saved that is served now, while it comes from the state cache. */
  readonly stateCacheSavedAt?: string
  /** By name: a resource of the API server, or `core`. */
  readonly watches: Readonly<
    Record<string, { readonly connected: boolean; readonly since: string; readonly lastEvent?: string }>
  >
}

/** `never synced`: the source has not answered yet. `disconnected`: a change in the cluster would not arrive now. */
export type SourceState = 'up to date' | 'disconnected' | 'stale' | 'never synced'

/** What the connections of a source say about the state that is served. Every surface says it with these words. */
export function sourceStateOf({ stale, stateCacheSavedAt, watches }: SourceStatusAnswer): SourceState {
  const all = Object.values(watches)
  if (stateCacheSavedAt === undefined && all.some(({ lastEvent }) => lastEvent === undefined)) return 'never synced'
  if (stale) return 'stale'
  return all.every(({ connected }) => connected) ? 'up to date' : 'disconnected'
}

/**
 * How the kpng of a node is, as it says itself or as a core sees it. `behind`: it has not taken over the newest state of the core. `failing`:
 * its last sync failed. `unknown`: it could not be asked.
 */
export type NodeState = SourceState | 'behind' | 'failing' | 'unknown'

export interface NodeHealth {
  /** In one or two words. */
  readonly state: NodeState
  /** Since when it has this state, as ISO time. Missing if nobody knows, or if it is up to date. */
  readonly since?: string
  /** Why its last sync failed, why it is stale, or why it could not be asked. */
  readonly lastError?: string
}

/** How the kpng is that gave this status. */
export function nodeHealthOf({ lastSync, source, core }: AgentStatus): NodeHealth {
  if (lastSync?.error !== undefined) return { state: 'failing', since: lastSync.at, lastError: lastSync.error }
  if (core ? !core.synced : lastSync === undefined) return { state: 'never synced' }
  const state = source ? sourceStateOf(source) : 'up to date'
  const lost = Object.values(source?.watches ?? {}).flatMap(({ connected, since }) => (connected ? [] : [since]))
  const [since] = lost.sort()
  return {
    state,
    ...(state === 'up to date' || since === undefined ? {} : { since }),
    ...(state === 'stale' && source?.reason !== undefined ? { lastError: source.reason } : {}),
  }
}

/** One sync of the data plane. */
export interface SyncAnswer {
  /** Counts the syncs of this process. */
  readonly number: number
  /** When it began. */
  readonly at: string
  /** How long it took. */
  readonly durationMs: number
  /** From the first change of it in the cluster until it was done. Missing if nobody knows. */
  readonly latencyMs?: number
  /** Whether everything was compared, and not only what changed. */
  readonly full: boolean
  /** What changed. A sync of everything lists what is new to this process. At most 50; `moreServices` counts the rest. */
  readonly services: readonly ServiceChangeAnswer[]
  /** The number of changed Services that `services` does not list. */
  readonly moreServices: number
  /** Why it failed. */
  readonly error?: string
}

export interface ServiceChangeAnswer {
  /** `namespace/name` */
  readonly service: string
  /** The number of endpoints that this node used before; missing if the Service is new. */
  readonly before?: number
  /** The number that it uses now; missing if the Service is gone. */
  readonly after?: number
  /** What happened to it, where one sync changed several Services. Missing: nobody compared. */
  readonly sentence?: string
}

/** A row of GET /v1/services. */
export interface ServiceRow {
  /** The namespace of the Service. */
  readonly namespace: string
  /** The name of the Service. */
  readonly name: string
  /** `ClusterIP`, `NodePort`, `LoadBalancer` */
  readonly type: string
  /** Empty for a headless Service. */
  readonly clusterIps: readonly string[]
  /** External and load-balancer IPs. */
  readonly externalIps: readonly string[]
  /** `80/tcp`, `80:30080/tcp` */
  readonly ports: readonly string[]
  /** Endpoints that this node uses. */
  readonly endpoints: number
  /** For traffic to cluster IPs. */
  readonly internalTrafficPolicy: 'Cluster' | 'Local'
  /** For traffic to node ports, external and load-balancer IPs. */
  readonly externalTrafficPolicy: 'Cluster' | 'Local'
  /** Whether clients stay with their endpoint. */
  readonly sessionAffinity: boolean
  /** What clients get on this node: the same as in every other answer about it. */
  readonly verdict: Verdict
  /** The same as a sentence. */
  readonly headline: string
  /** Why, in a few words. Empty: there is nothing to say. */
  readonly reason: string
  /** The codes of what was found, the worst first: `KPNG-S003`. */
  readonly findings: readonly string[]
  /** Endpoints that exist. Missing where only the used ones are known: a node of a remote core. */
  readonly total?: number
  /** Those that are passed on: see `--with-service-labels`. */
  readonly labels?: Readonly<Record<string, string>>
}

/** A row of GET /v1/endpoints: an endpoint that this node uses. */
export interface EndpointRow {
  /** The namespace of the Service. */
  readonly namespace: string
  /** The name of the Service. */
  readonly service: string
  /** Its addresses. */
  readonly ips: readonly string[]
  /** Empty if it has none. */
  readonly hostname: string
  /** On this node. */
  readonly isLocal: boolean
}

/** A row of GET /v1/nodes: this node, or all nodes that a core knows. Missing in older versions: how the kpng of the node is. */
export interface NodeRow extends Partial<NodeHealth> {
  /** The name of the node. */
  readonly name: string
  /** InternalIP first. */
  readonly addresses: readonly string[]
  /** Empty if nobody knows. */
  readonly zone: string
  /** Empty if nobody knows. */
  readonly podCidrs: readonly string[]
  /** Whether it is the node of the kpng that answers. */
  readonly isLocal: boolean
  /** Of a core: the revision of the state that the node has taken over. */
  readonly revision?: number
  /** Those that are passed on: see `--with-node-labels`. */
  readonly labels?: Readonly<Record<string, string>>
}

/** A row of GET /v1/frontends. */
export interface FrontendRow {
  /** `10.96.0.10:80/tcp`, `IPv4 node port 30080/tcp` */
  readonly id: string
  /** `clusterIP`, `externalIP`, `loadBalancerIP`, `nodePort` */
  readonly kind: string
  /** `namespace/name` */
  readonly service: string
  /** The name of the Service's port; empty if it has none. */
  readonly portName: string
  /** Endpoints for pods and for this node. */
  readonly inside: readonly string[]
  /** The same as `inside` unless externalTrafficPolicy is Local. */
  readonly outside: readonly string[]
}

/** The body of an answer with a status of 400 and above. */
export interface AgentErrorAnswer {
  /** A sentence. */
  readonly error: string
}
