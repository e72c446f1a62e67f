import { equal } from '../objects/json.js'
import type { Endpoint, EndpointSlice } from '../objects/kinds.js'
import { type EndpointGroup, groupKey } from './desired-endpoints.js'

export const maxEndpointsPerSlice = 100

/** What to write so that the slices of a Service hold what they should. */
interface SlicePlan {
  create: EndpointGroup[]
  update: { slice: EndpointSlice; endpoints: Endpoint[] }[]
  remove: EndpointSlice[]
}

const identity = ({ targetRef, addresses }: Endpoint): string => `${targetRef?.uid ?? ''} ${addresses[0]}`

/**
 * The fewest writes: endpoints stay in the slice they are in, new ones fill free places, what is left gets new slices, and
 * a slice that is empty goes.
 */
export function planSlices(existing: readonly EndpointSlice[], groups: readonly EndpointGroup[]): SlicePlan {
  const plan: SlicePlan = { create: [], update: [], remove: [] }
  const byGroup = new Map<string, EndpointSlice[]>()
  for (const slice of existing) {
    const key = groupKey(slice.addressType, slice.ports ?? [])
    byGroup.set(key, [...(byGroup.get(key) ?? []), slice])
  }
  for (const group of groups) {
    const key = groupKey(group.addressType, group.ports)
    planGroup(plan, byGroup.get(key) ?? [], group)
    byGroup.delete(key)
  }
  for (const slices of byGroup.values()) plan.remove.push(...slices)
  return plan
}

function planGroup(plan: SlicePlan, slices: readonly EndpointSlice[], group: EndpointGroup): void {
  const wanted = new Map(group.endpoints.map((endpoint) => [identity(endpoint), endpoint]))
  const kept = slices.map((slice) => {
    const endpoints: Endpoint[] = []
    for (const endpoint of slice.endpoints) {
      const now = wanted.get(identity(endpoint))
      if (!now) continue
      endpoints.push(now)
      wanted.delete(identity(endpoint))
    }
    return { slice, endpoints }
  })
  const rest = [...wanted.values()]
  // A slice that is written anyway takes new endpoints first: one write instead of two.
  const changedFirst = [...kept].sort((a, b) => Number(unchanged(a)) - Number(unchanged(b)))
  for (const { endpoints } of changedFirst)
    endpoints.push(...rest.splice(0, Math.max(0, maxEndpointsPerSlice - endpoints.length)))
  for (const entry of kept) {
    if (entry.endpoints.length === 0) plan.remove.push(entry.slice)
    else if (!unchanged(entry)) plan.update.push(entry)
  }
  while (rest.length > 0) plan.create.push({ ...group, endpoints: rest.splice(0, maxEndpointsPerSlice) })
}

const unchanged = ({ slice, endpoints }: { slice: EndpointSlice; endpoints: Endpoint[] }): boolean =>
  equal(slice.endpoints, endpoints)
