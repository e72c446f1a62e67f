import type { Diagnosis } from '@kpng/api'

/** What the checks of a cluster look at. */
export interface ClusterFacts {
  readonly server: ServerFact
  /** The server's clock minus this machine's. */
  readonly clockAheadMs: number
  readonly rights: readonly RightFact[]
  readonly certificates: readonly CertificateFact[]
  readonly services: readonly ServiceFact[]
  /** Whether the pods could be looked at. */
  readonly pods: true
  /** `namespace/name` of EndpointSlices that name no Service, or one that does not exist. */
  readonly slicesWithoutService: readonly string[]
  /** What kpng leaves out of objects, with the reasons, by `Kind namespace/name`. */
  readonly skipped: ReadonlyMap<string, readonly string[]>
  /** Of every Service, as the node sees it. */
  readonly diagnoses: readonly Diagnosis[]
}

export interface ServerFact {
  readonly url: string
  /** Why it cannot be reached. */
  readonly problem?: string
  /** `v1.33.0` */
  readonly version?: string
}

export interface RightFact {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly isAllowed: boolean
}

export interface CertificateFact {
  /** Where it is configured, or its file. */
  readonly where: string
  readonly subject: string
  readonly validFromMs: number
  readonly validToMs: number
}

export interface ServiceFact {
  /** `namespace/name` */
  readonly path: string
  readonly nodePorts: readonly number[]
  /** Deprecated fields and annotations that it uses. */
  readonly fields: readonly string[]
}
