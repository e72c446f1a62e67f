import type { AgentStatus, ServiceRow, SyncAnswer } from './agent.js'

// GET /v1/stream: server-sent events for the live page and for `kpng get -w`. Versioned like the rest of the agent API: fields are
// only ever added. Every event has an id, `<instance>.<number>`. A reader that comes back with `Last-Event-ID` gets a `changes` event with all that it
// missed; if the agent cannot say (another instance, or too far behind), it gets a `snapshot` as at the start.

/** A row of the live page. */
export interface LiveService extends ServiceRow {
  /** Whether topology hints choose its endpoints. */
  readonly hints: boolean
  /** Whether only some sources are allowed. */
  readonly sourceRanges: boolean
  /** The number of the sync that changed it last; 0: none since the start. */
  readonly changedBy: number
  /** ISO time of that sync. */
  readonly changedAt?: string
}

/** When the parts of one sync were done, in milliseconds after `at` of the sync. Negative: before it. Missing: nobody knows. */
export interface SyncTimes {
  /** The change in the cluster, as its object says. */
  readonly trigger?: number
  /** The event arrived from the API server. */
  readonly received?: number
  /** The store has it. */
  readonly stored?: number
  /** The change set was made. */
  readonly viewed?: number
  /** The change set arrived at the node's runner. */
  readonly arrived?: number
  /** The backend's own steps. */
  readonly steps: readonly { readonly name: string; readonly from: number; readonly to: number }[]
}

/** A sync as the live page draws it. */
export interface LiveSync extends SyncAnswer {
  /** Where its time went. Missing if nobody knows. */
  readonly times?: SyncTimes
  /** What changed, as a sentence: `10.244.3.4 of default/web is not ready`. Missing if nobody knows. */
  readonly sentence?: string
}

/** A point of the charts: one per second. */
export interface LiveSample {
  /** Unix time in seconds. */
  readonly at: number
  /** Syncs in this second. */
  readonly syncs: number
  /** Changed Services in this second. */
  readonly changes: number
  /** Of the slowest sync of this second, from the change in the cluster until it was done. Missing: no sync. */
  readonly latencyMs?: number
  /** Open connections that the data plane carries itself. */
  readonly connections?: number
  /** Processor time of this process in this second, in milliseconds. */
  readonly cpuMs: number
  /** Resident memory in bytes. */
  readonly memory: number
}

/** `event: snapshot` */
export interface LiveSnapshot {
  /** As /v1/status. */
  readonly status: AgentStatus
  /** All of them. */
  readonly services: readonly LiveService[]
  /** At most 300, the oldest first. */
  readonly changes: readonly LiveSync[]
  /** At most 300, the oldest first. */
  readonly samples: readonly LiveSample[]
  /** Of a core only. */
  readonly nodes?: readonly LiveNode[]
}

/** `event: changes`: what happened since the last event, at most five times a second. */
export interface LiveChanges {
  /** As /v1/status. */
  readonly status: AgentStatus
  /** The oldest first. */
  readonly syncs: readonly LiveSync[]
  /** By `namespace/name`; null for those that are gone. */
  readonly services: Readonly<Record<string, LiveService | null>>
  /** Of a core only: the nodes that changed; null for those that are gone. */
  readonly nodes?: Readonly<Record<string, LiveNode | null>>
}

/** `event: pulse`: once a second, so that a reader notices an agent that is gone. */
export interface LivePulse {
  /** As /v1/status. */
  readonly status: AgentStatus
  /** The newest point of the charts. */
  readonly sample: LiveSample
}

/** A node that a core serves. */
export interface LiveNode {
  /** The name of the node. */
  readonly name: string
  /** Watchers of this node that are connected. */
  readonly watchers: number
  /** The revision of the state that was sent to the slowest of them. */
  readonly revision: number
  /** Since when it is behind the state of the core, as ISO time. Missing: it is not. */
  readonly behindSince?: string
  /** Without watchers: when the last one left, as ISO time. Missing: there was none since the start of the core. */
  readonly leftAt?: string
}

/** GET /v1/connections: what the data plane carries now. At most 500, the newest first. */
export interface ConnectionsAnswer {
  /** Missing: the data plane cannot say, and `why` says why. */
  readonly connections?: readonly LiveConnection[]
  /** How many there are in all. */
  readonly total: number
  /** Why there are no connections, or no counters, as a sentence. */
  readonly why?: string
  /** Connections since the frontend was made, by Service, where the data plane counts them. */
  readonly counters?: readonly { readonly service: string; readonly connections: number; readonly bytes?: number }[]
}

/** A connection, or a UDP flow, that is open. */
export interface LiveConnection {
  /** Of the transport. */
  readonly protocol: 'TCP' | 'UDP'
  /** `10.244.1.5:40112` */
  readonly client: string
  /** `10.96.0.10:80` */
  readonly frontend: string
  /** `namespace/name` */
  readonly service: string
  /** `10.244.2.7:8080` */
  readonly endpoint: string
  /** What it sent so far. */
  readonly bytesFromClient: number
  /** What it received so far. */
  readonly bytesToClient: number
  /** ISO time. */
  readonly since: string
}
