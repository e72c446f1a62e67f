// What is wrong with a Service, and what repairs it: the one answer that every surface of kpng shows. `@kpng/diagnose` makes it. The types are
// here because the agent API sends them.

/** Of JSON that leaves the program. It grows when a field changes its meaning or goes, not when one is added. */
export const schemaVersion = 2

/** A fact, or the reason why nobody knows it, as a clause without a full stop. What is unknown is never shown as fine. */
export type Known<T> = { readonly value: T } | { readonly unknown: string }

/**
 * What a Service's clients get on one node, from the best to the worst. `draining` and `differs` have words of their own because other people
 * act on them: a deployment, and the node.
 * - `serving`: every new connection reaches an endpoint.
 * - `draining`: so it does, but only terminating endpoints are left.
 * - `dropped`: a traffic policy is Local and no endpoint is on this node: such traffic is dropped here. Everything else is served.
 * - `partly`: a port, an address or a kind of client is not served, others are.
 * - `notServedHere`: it exists, and this kpng does not serve it: headless, of another proxy, of a protocol that the data plane lacks.
 * - `refused`: no connection reaches an endpoint.
 * - `differs`: the data plane does not hold what it should.
 * - `absent`: there is no such Service. Only the API server, or a file, can say that.
 * - `unknown`: what would have to be known is not.
 */
export type Verdict = (typeof verdicts)[number]

export const verdicts = [
  'serving',
  'dropped',
  'draining',
  'unknown',
  'notServedHere',
  'absent',
  'partly',
  'refused',
  'differs',
] as const

/** problem: something does not work. warning: it works now, or only in part. note: good to know. */
export type Level = 'problem' | 'warning' | 'note'

/** One thing that was found. Every text is a sentence. */
export interface Finding {
  /** `KPNG-S002`. It never changes its meaning: docs/findings.md lists them. */
  readonly code: string
  /** How bad it is. */
  readonly level: Level
  /** What was seen. */
  readonly what: string
  /** What it means for clients. */
  readonly why: string
  /** What repairs it. */
  readonly todo: string
  /** To paste into a shell. */
  readonly command?: string
  /** The objects that it is about: some of them, if there are many. */
  readonly examples?: readonly string[]
  /** How many objects `examples` leaves out. */
  readonly more?: number
}

/** What is known about one Service on one node. */
export interface Diagnosis {
  /** `namespace/name` */
  readonly service: string
  /** The answer in one word. */
  readonly verdict: Verdict
  /** One sentence: what clients get and, if that is not everything, why. */
  readonly headline: string
  /** The same without the name, in a few words. Empty: there is nothing to say. */
  readonly reason: string
  /** The worst first. */
  readonly findings: readonly Finding[]
  /** Endpoints that get connections on this node. */
  readonly used: number
  /** Endpoints that exist. Missing: nobody knows. */
  readonly total?: number
  /** What nobody could say, and what would be needed, as sentences. */
  readonly unknown: readonly string[]
}

/** What Kubernetes' objects say about one Service beyond what a proxy watches. */
export interface KubernetesFacts {
  /** Who said it: `the API server https://10.0.0.1:6443`, `the file web.yaml`. */
  readonly from: string
  /** Missing: there is no such Service. */
  readonly service?: KubernetesService
  /** Pods that its selector matches, at most 100. */
  readonly pods: Known<readonly PodFacts[]>
  /** If its selector matches none: pods that it may have meant, of its namespace and of others. At most 500. */
  readonly otherPods: Known<readonly OtherPod[]>
  /** Names of the NetworkPolicies for incoming traffic that select one of its pods. */
  readonly networkPolicies: Known<readonly string[]>
}

/** A Service as the API server or a file has it. */
export interface KubernetesService {
  /** `ClusterIP`, `NodePort`, `LoadBalancer`, `ExternalName` */
  readonly type: string
  /** Empty if it has none yet; `None` if it is headless. */
  readonly clusterIps: readonly string[]
  /** Empty: it has none. */
  readonly selector: Readonly<Record<string, string>>
  /** In the order of the Service, so that a patch can name one by its index. */
  readonly ports: readonly {
    readonly name: string
    readonly port: number
    readonly protocol: string
    /** A number, or the name of a container's port. */
    readonly targetPort: number | string
  }[]
  /** Whether endpoints that are not ready count as ready. */
  readonly publishNotReadyAddresses: boolean
  /** Whether its type asks for a load balancer and none has given it an address. */
  readonly awaitsLoadBalancer: boolean
  /** Why this proxy does not serve it, as a sentence that follows "it is not served:". */
  readonly notServed?: string
}

/** A pod that the selector matches. */
export interface PodFacts {
  /** In the namespace of the Service. */
  readonly name: string
  /** Its condition Ready. */
  readonly isReady: boolean
  /** What kubectl shows in the column STATUS, as far as it helps. */
  readonly state: string
  /** Those that its containers declare. */
  readonly ports: readonly { readonly name: string; readonly number: number; readonly protocol: string }[]
}

/** A pod that the selector does not match, or that is in another namespace. */
export interface OtherPod {
  /** Where it is. */
  readonly namespace: string
  /** Unique there. */
  readonly name: string
  /** To be compared with the selector. */
  readonly labels: Readonly<Record<string, string>>
}
