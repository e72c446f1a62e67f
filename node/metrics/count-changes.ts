import type { Changes, ServiceChange, ServiceEndpoints } from '@kpng/client'

export interface ChangeCounts {
  /** Services that were added, changed or deleted. */
  readonly services: number
  /** Services whose endpoints changed. */
  readonly endpoints: number
}

/** How many services and how many services' endpoints a change is about. */
export function countChanges(changes: Changes): ChangeCounts {
  let services = 0
  let endpoints = 0
  for (const change of changes.services.values()) {
    if (change.before?.service !== change.after?.service) services++
    if (endpointsDiffer(change)) endpoints++
  }
  return { services, endpoints }
}

/** What is unchanged is the same object, so that nothing need be compared in depth. */
function endpointsDiffer({ before, after }: ServiceChange): boolean {
  const old = endpointsOf(before)
  const young = endpointsOf(after)
  return old.length !== young.length || old.some((endpoint, index) => endpoint !== young[index])
}

const endpointsOf = (service: ServiceEndpoints | undefined) => service?.endpoints ?? []
