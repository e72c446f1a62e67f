import type { Family } from '@kpng/api'
import type { Host } from '../addresses.js'

// A case is data: objects, and what clients must then see. A case with several steps is a change, seen before and after. What changes may
// also be something beside the objects: a step has actions for that.

/** A Kubernetes object as a manifest has it. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Record<string, string>
    readonly annotations?: Record<string, string>
  }
  readonly [field: string]: unknown
}

export interface Case {
  /** Unique, in lower case with dashes: it is how people name the case. */
  readonly id: string
  /** What is proved, as a sentence. */
  readonly title: string
  readonly steps: readonly Step[]
  /** Objects or actions that are risky for others: fed apart from the cases that are fed together. */
  readonly alone?: boolean
  /** Why an API server cannot be given these objects; the case is then skipped with `--kubeconfig`. */
  readonly manifestsOnly?: string
  /** It needs a specialised proxy beside the proxy under test; the case is skipped if none is given. */
  readonly specialised?: boolean
  /** Why only kpng can be asked for this: the case is skipped for other proxies. */
  readonly kpngOnly?: string
  /** The proxy under test is started with these flags, for all cases that name the same ones. */
  readonly flags?: ProxyFlags
  /** node-b runs the proxy too. */
  readonly onBothNodes?: boolean
}

export interface ProxyFlags {
  readonly words: readonly string[]
  /** The backends that know them; the case is skipped for others. */
  readonly knownTo: readonly string[]
}

export interface Step {
  /** What happened before this step, for people: "the endpoint moved". */
  readonly after: string
  /** All objects of the case from now on; what an earlier step had and this one has not is gone. */
  readonly objects: readonly KubernetesObject[]
  readonly cells: readonly Cell[]
  /** What is done when the proxy has programmed the objects, before the cells are measured. The next step is fed without it. */
  readonly actions?: readonly Action[]
  /** How long a wrong cell may take to become right, in milliseconds, if that is longer than `--settle`. */
  readonly settleMs?: number
}

/** Something that happens beside the objects. */
export type Action =
  /** A shell script inside a host. If it fails, the rest of the case is skipped. */
  | { readonly kind: 'run'; readonly host: Host; readonly script: string }
  /** The proxy under test ends: killed, or asked to stop. It is started again before the next step is fed. */
  | { readonly kind: 'end-proxy'; readonly signal: 'SIGKILL' | 'SIGTERM' }
  /** The proxy cannot reach the API server until the next step is fed. */
  | { readonly kind: 'api-server-away' }

export interface Cell {
  /** Unique in its case and step; ends in the family. */
  readonly id: string
  readonly client: Host
  readonly to: Destination
  readonly expect: Expectation
  /** Rows of the checklist that it proves. */
  readonly rows: readonly number[]
  /** Cells of one case with the same flow share one socket, also across steps. */
  readonly flow?: string
  /** How often to ask. Default: as often as the expectation needs. */
  readonly tries?: number
  /** Over TCP: so many bytes there and back, with one direction closed before the other. */
  readonly bytes?: number
  /**
   * Ask one after the other, so far apart. With `atMostMs` the tries prove something only if none came later than that after the one
   * before. Default: all at once.
   */
  readonly spacing?: { readonly ms: number; readonly atMostMs?: number }
  /** Ask again and again from the end of the step before until this one is measured: no request may fail meanwhile. */
  readonly throughout?: boolean
}

export interface Destination {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly family: Family
  readonly ip: string
  readonly port: number
}

export type Expectation =
  | Reached
  /** A reset or an ICMP error, at once. */
  | { readonly outcome: 'refused' }
  /** Nothing comes back. */
  | { readonly outcome: 'dropped' }
  /** The proxy leaves the packet alone: it is routed on, to the gateway. */
  | { readonly outcome: 'passed' }
  /** No pod is reached; how it fails is left open. */
  | { readonly outcome: 'unserved' }
  /** Accepted, then reset or never answered. No cell expects it; deviations may. */
  | { readonly outcome: 'broken' }
  /** Some requests failed, in whatever way. No cell expects it; deviations may. */
  | { readonly outcome: 'interrupted' }

export interface Reached {
  readonly outcome: 'reached'
  /** Servers that may be reached, as `a1`, or `a1:9090` where the port counts. */
  readonly servers: readonly string[]
  /** The client's address as the server sees it: its own, an address of the proxy's node, or either. */
  readonly source: 'kept' | 'node' | 'any'
  /**
   * `all` (default): each of them over the tries. `evenly`: each about as often as the others. `one`: always the same. `several`: more than
   * one. `some`: whichever.
   */
  readonly hits?: 'all' | 'evenly' | 'one' | 'several' | 'some'
}

/** `case/step/cell`; cases with one step leave the step out. */
export const cellId = ({ id, steps }: Case, step: number, cell: Cell): string =>
  steps.length === 1 ? `${id}/${cell.id}` : `${id}/${step + 1}/${cell.id}`

/** Whether the objects alone decide what happens. It does not if something else is done, or if the proxy is started in another way. */
export const isDecidedByObjects = ({ steps, flags, onBothNodes = false }: Case): boolean =>
  !onBothNodes && flags === undefined && steps.every(({ actions = [] }) => actions.length === 0)
