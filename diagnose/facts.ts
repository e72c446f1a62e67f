import type { EndpointReason, Finding, HeldAnswer, Known, KubernetesFacts, ServiceAnswer } from '@kpng/api'
import type { ServiceEndpoints } from '@kpng/client'
import type { Client, Frontend, FrontendTable, RouteFeatures, ServiceProblem } from '@kpng/dataplane'

/** A way into a Service, and whose it is if another Service has it. */
export interface Way {
  readonly frontend: Frontend
  /** `namespace/name`. Undefined: the Service's own. */
  readonly owner?: string | undefined
}

/** What the core knows about the endpoints of a Service, as one node sees them. */
export interface SelectionFacts {
  /** Whether the core has the Service. */
  readonly isKnown: boolean
  /** Endpoints that exist. */
  readonly total: number
  /** How many are not used, by reason. */
  readonly leftOut: Readonly<Partial<Record<EndpointReason, number>>>
  /** Whether all that are used are terminating, and stand in for ready ones that do not exist. */
  readonly onlyStandIns: boolean
  /** Services with a similar name, if it is not known. */
  readonly nearest?: readonly string[]
}

/** All that a diagnosis is made of. The caller brings the facts; nothing here asks anybody. */
export interface Facts {
  /** `namespace/name` */
  readonly service: string
  /** Whether it is about the whole cluster, as a core sees it: that some node has no endpoint of its own does not matter there. */
  readonly ofCluster?: boolean
  /** As the node's view has it. Undefined: the view does not. */
  readonly item: ServiceEndpoints | undefined
  /** All of the Service. */
  readonly ways: readonly Way[]
  /** The ids of the frontends that were asked about. Default: all. */
  readonly asked?: ReadonlySet<string>
  /** What of the Service the data plane leaves out. */
  readonly problems: readonly ServiceProblem[]
  /** Default: those of kube-proxy's nftables mode. */
  readonly features?: RouteFeatures | undefined
  /** Who asks. Undefined: pods, and clients from outside where they can ask. */
  readonly client?: Client | undefined
  readonly selection: Known<SelectionFacts>
  readonly kubernetes: Known<KubernetesFacts>
  /** What the data plane holds, by the id of the frontend. Missing: it was not read back. */
  readonly held?: ReadonlyMap<string, HeldAnswer>
  /** The data plane was found not to hold what it should. */
  readonly differs?: boolean
  /** What on the node stops connections, or may. */
  readonly onNode?: readonly Finding[]
}

/** The ways into a Service that a table has, also those whose address another Service owns. */
export const waysOf = (table: FrontendTable, service: string): Way[] =>
  table.wantedBy(service).map((frontend) => {
    const owner = table.get(frontend.id)
    if (owner === frontend) return { frontend }
    return { frontend, owner: owner?.service ?? 'another Service, whose cluster IP it is' }
  })

/** The same from the core's full answer. */
export function selectionOf({ isKnown, nearest, endpoints }: ServiceAnswer): SelectionFacts {
  const leftOut: Partial<Record<EndpointReason, number>> = {}
  for (const { reason } of endpoints) if (reason) leftOut[reason] = (leftOut[reason] ?? 0) + 1
  const used = endpoints.filter(({ reason }) => reason === undefined)
  const onlyStandIns = used.length > 0 && used.every(({ terminating }) => terminating)
  return { isKnown, total: endpoints.length, leftOut, onlyStandIns, nearest }
}
