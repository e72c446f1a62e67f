import type { Family, globalv1, localv1 } from '@kpng/api'
import type { ConnectionRecord } from './connection-record.js'

/** A service and the endpoints that this node should use for it. Never changed in place: a new object takes its place. */
export interface ServiceEndpoints {
  /** The Service: addresses, ports, policies. */
  readonly service: localv1.Service
  /** In the order of their paths. */
  readonly endpoints: readonly localv1.Endpoint[]
}

/** Everything one node should do. */
export interface NodeView {
  /** The node that this view is for, as the client asked for it. */
  readonly nodeName: string
  /** The node itself, where the source knows it. */
  readonly node: globalv1.Node | undefined
  /** By `namespace/name`. */
  readonly services: ReadonlyMap<string, ServiceEndpoints>
  /** The ranges that cluster IPs come from; empty when the source does not know. */
  readonly serviceCidrs: ReadonlyMap<string, localv1.ServiceCIDR>
}

/** A service before and after; undefined where it did not or does not exist. */
export interface ServiceChange {
  /** As it was at the last sync that succeeded. Undefined: it did not exist. */
  readonly before: ServiceEndpoints | undefined
  /** As it is now, the same object as in the view. Undefined: it was deleted. */
  readonly after: ServiceEndpoints | undefined
}

/** When the change of a service's endpoints began in the cluster. */
export interface Trigger {
  /** `namespace/name` */
  readonly service: string
  /** Unix time in milliseconds, by the clock of the controller that wrote the EndpointSlice. */
  readonly unixMs: number
}

/** How a change came here. Unix times in milliseconds; where several changes came together, those of the first. */
export interface Timeline {
  /** The store's revision. */
  readonly revision: number
  /** The source had it; missing where the source does not say. */
  readonly receivedAtMs: number | undefined
  /** It was in the store. */
  readonly committedAtMs: number
  /** It was worked out for this node. */
  readonly viewedAtMs: number
}

/** What is new in a view since the last sync that succeeded. */
export interface Changes {
  /** Nothing is known of what the data plane holds: at the start, after a failed sync, on drift. Look at the whole view. */
  readonly full: boolean
  /** By `namespace/name`. */
  readonly services: ReadonlyMap<string, ServiceChange>
  /** Whether `view.node` is different. */
  readonly node: boolean
  /** Whether `view.serviceCidrs` is different. */
  readonly serviceCidrs: boolean
  /** When the changes of endpoints began in the cluster. Empty if the source does not say. */
  readonly triggers: readonly Trigger[]
  /** How the changes came here, for tracing; missing if the source does not say. */
  readonly timeline?: Timeline
}

/** A part of a sync that took time: a transaction, a program that was run. */
export interface SyncStep {
  /** What took the time, such as `nft` or `conntrack`. */
  readonly name: string
  /** Unix times in milliseconds. */
  readonly startedAtMs: number
  /** Unix time in milliseconds. */
  readonly endedAtMs: number
  /** What is worth knowing of it, such as the number of rules. May be empty. */
  readonly attributes: Readonly<Record<string, string | number | boolean>>
}

/** What a backend may ask of its runner. */
export interface Runner {
  /** Asks for a sync with `changes.full`, for instance because somebody else changed the data plane. */
  requestFullSync(reason: string): void
}

/**
 * Makes one node's data plane match one node's view. The runner does everything around it: retries, pacing, metrics, tracing.
 * `setup`, `sync`, `cleanup` and `close` are required. The rest is for `kpng explain`, the dashboard, metrics and the
 * conformance kit, and a backend that lacks it works without them.
 */
export interface Backend {
  /** Checks the machine; the error says what is missing. */
  setup(runner: Runner): Promise<void>
  /**
   * Rejecting makes the runner try again, after a while and with `changes.full`.
   * @param steps given when the sync is traced: add what took time
   */
  sync(view: NodeView, changes: Changes, steps?: SyncStep[]): Promise<void>
  /** Removes everything that this backend put on the machine. Not called on exit: the data plane outlives the process. */
  cleanup(): Promise<void>
  /**
   * Called once when the run ends, also when `setup` failed: frees sockets, timers and files. A backend that carries traffic
   * itself ends it here; rules in the kernel stay.
   */
  close(): Promise<void>
  /**
   * Whether rules of an earlier run are on the machine and serve. Asked after `setup` and before the first `sync`: a state that may be stale
   * must not replace them. Missing: there are none, because nothing outlives the process.
   */
  hasRules?(): Promise<boolean>
  /** What the data plane can do. May be called at any time. */
  features?(): BackendFeatures
  /** Reads back what the data plane really holds for one frontend. Undefined: nothing. */
  held?(frontend: FrontendAddress): Promise<HeldFrontend | undefined>
  /** What it counts and reports beside its syncs. */
  readonly observations?: Observations
}

export type FrontendKind = 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort'

export type Protocol = 'tcp' | 'udp' | 'sctp'

/** Where clients send to: an address and port of a Service, or a node port. */
export interface FrontendAddress {
  /** Which address of the Service it is. */
  readonly kind: FrontendKind
  /** The family of `address`. A node port has one frontend per family. */
  readonly family: Family
  /** Canonical text. Empty for a node port, which is open on every address that serves node ports. */
  readonly address: string
  /** `any` together with port 0: the Service has the whole address, whatever the protocol and port. */
  readonly protocol: Protocol | 'any'
  /** The port that clients send to, 1-65535; 0 if the Service has the whole address. */
  readonly port: number
}

/** What a data plane holds for one frontend. */
export interface HeldFrontend {
  /** Endpoints for clients inside the cluster (pods, this node): `10.244.1.5:8080`, in the data plane's own order. */
  readonly inside: readonly string[]
  /** Endpoints for everybody else. */
  readonly outside: readonly string[]
  /** What happens to a client from outside if there is no endpoint. */
  readonly otherwise: 'refuse' | 'drop'
  /** Clients whose session affinity is remembered, and their endpoints. Missing: no session affinity. */
  readonly sessionAffinity?: readonly { readonly client: string; readonly endpoint: string }[]
  /** Connections since the frontend was made. Missing: not counted. */
  readonly connections?: number
}

/** What a data plane can do, for status pages and the conformance kit. */
export interface BackendFeatures {
  /** As users name it: `nftables`, `userspace`. */
  readonly name: string
  /** The kinds of addresses that it serves. */
  readonly kinds: readonly FrontendKind[]
  /** The protocols that it serves. */
  readonly protocols: readonly Protocol[]
  /** The address families that it serves on this machine. */
  readonly families: readonly Family[]
  /** sessionAffinity: ClientIP */
  readonly sessionAffinity: boolean
  /** loadBalancerSourceRanges */
  readonly sourceRanges: boolean
  /** Services that have a whole address instead of ports. */
  readonly wholeAddresses: boolean
  /** Endpoints see the client's address under externalTrafficPolicy Local. */
  readonly keepsSourceAddress: boolean
  /** Node ports answer on loopback addresses, where nodePortAddresses allow it: in all families, or in these. */
  readonly localhostNodePorts: boolean | readonly Family[]
  /**
   * Packets to other ports of a cluster IP are refused, and those to cluster IPs that no Service has are dropped. False: they are routed
   * on. Default true.
   */
  readonly guardsClusterIps?: boolean
  /** The node itself has the addresses of Services, so it refuses other ports of them. Default false: they are routed on. */
  readonly hasServiceAddresses?: boolean
  /**
   * Whether connections that should be dropped are dropped, or TCP connections are accepted and then reset. Default `always`.
   * `not-own-sources`: those of this node that source ranges do not allow are reset. `unserved`: they are dropped where no client at all
   * is served, and reset elsewhere. `never`: they are refused where no client at all is served, and reset elsewhere.
   */
  readonly drops?: 'always' | 'not-own-sources' | 'unserved' | 'never'
  /** Connections are counted per service port. */
  readonly counters: boolean
  /** Answers go to the client without passing the node that took the request. */
  readonly directServerReturn: boolean
  /**
   * TCP sockets of this node and of its pods connect to the endpoint itself, so endpoints see the address of the pod. Where source ranges are
   * set, they do not. Missing: false.
   */
  readonly connectsSockets?: boolean
  /** How a backend that carries TCP itself moves bytes: the kernel does (`splice`), or this process (`portable`). */
  readonly mover?: 'splice' | 'portable'
}

/** New connections of one service port. */
export interface ServicePortConnections {
  /** The namespace of the Service. */
  readonly namespace: string
  /** The name of the Service. */
  readonly service: string
  /** The name of the port; empty if it has none. */
  readonly port: string
  /** Connections counted so far. */
  readonly connections: number
}

/** What a backend that carries traffic itself counts for one service port. */
export interface ServicePortTraffic {
  /** Connections and UDP sessions that were accepted so far. */
  readonly connections: number
  /** Those that are open now. */
  readonly active: number
  /** Bytes from clients to endpoints so far. */
  readonly bytesToEndpoint: number
  /** Bytes from endpoints to clients so far. */
  readonly bytesToClient: number
  /** Attempts to reach one endpoint that failed. */
  readonly dialFailures: number
  /** Clients for which no endpoint could be reached. */
  readonly failures: number
  /** UDP clients whose session ended to make room for another. */
  readonly crowdedOut: number
  /** Clients whose connection was refused. */
  readonly refused: number
}

/** Is told about events as they happen. Its functions must not throw. */
export interface ObservationListener {
  /** Stale flows of a family were looked for; `deleted` of them were found and removed. */
  staleFlows?(family: Family, durationMs: number, deleted: number): void
  /** Something that is no longer needed could not be removed. It is tried again. */
  cleanupFailed?(families: readonly Family[]): void
  /** Another program had changed what the data plane holds of these Services (`namespace/name`). A sync has repaired it. */
  repaired?(services: readonly string[]): void
  /** A connection or UDP session has ended. Without this function, no clock is read for it. */
  connectionEnded?(connection: ConnectionRecord): void
}

/** A connection or UDP session that a backend carries itself. */
export interface OpenConnection {
  /** Of the frontend. */
  readonly protocol: 'tcp' | 'udp'
  /** `10.244.1.5:40112` */
  readonly client: string
  /** Where the client connected to: `10.96.0.10:80`, `node port 30080`. */
  readonly frontend: string
  /** `namespace/name` */
  readonly service: string
  /** `10.244.2.7:8080` */
  readonly endpoint: string
  /** Bytes from the client so far. */
  readonly bytesToEndpoint: number
  /** Bytes to the client so far. */
  readonly bytesToClient: number
  /** Unix time in milliseconds. */
  readonly sinceMs: number
}

/** Packets that rules counted since the counters were made. */
export interface PacketCounts {
  /** Dropped because conntrack takes them for invalid. */
  readonly invalidDropped: number
  /** Accepted for node ports on loopback addresses. */
  readonly localhostNodePortsAccepted: number
}

/** What a backend counts and reports. Each part is there if the backend has it; the listener may be set at any time. */
export interface Observations {
  /** Read from the data plane each time. */
  readonly connections?: () => Promise<readonly ServicePortConnections[]>
  /** Packets that rules of iptables counted, read from the kernel each time. */
  readonly packets?: () => Promise<PacketCounts>
  /** By service port (`namespace/name:port`). */
  readonly traffic?: ReadonlyMap<string, ServicePortTraffic>
  /** The connections that are open now: how many, and the newest ones, at most `limit`. The newest first. */
  readonly open?: (
    limit: number,
  ) => Promise<{ readonly total: number; readonly connections: readonly OpenConnection[] }>
  /** Addresses that should be open and are not, and why. */
  readonly failures?: () => ReadonlyMap<string, string>
  /** Set it to be told at once. Default: an object without functions. */
  listener: ObservationListener
}
