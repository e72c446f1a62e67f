import { localv1 } from '@kpng/api'
import type { ServiceChange, ServiceEntry } from '../store/index.js'
import type { DeleteItem, EndpointItem, SetItem } from './items.js'
import type { NodeTopology } from './selection.js'
import { type ServiceView, viewerGroup, viewOf } from './service-view.js'

/** What a node must be told about one service. */
export interface ServiceDiff {
  readonly service: SetItem | undefined
  readonly endpoints: readonly EndpointItem[]
  readonly deletedEndpoints: readonly DeleteItem[]
  readonly deletedService: DeleteItem | undefined
}

const nothing: ServiceDiff = { service: undefined, endpoints: [], deletedEndpoints: [], deletedService: undefined }

export const isEmpty = (diff: ServiceDiff): boolean =>
  !diff.service && diff.endpoints.length === 0 && diff.deletedEndpoints.length === 0 && !diff.deletedService

const sharedDiffs = new WeakMap<ServiceChange, Map<string, ServiceDiff>>()

/** The difference a change makes to a node. Worked out once for all nodes that see the service alike, before and after. */
export function diffFor(change: ServiceChange, before: NodeTopology, after: NodeTopology): ServiceDiff {
  const groupBefore = change.before && viewerGroup(change.before, before)
  const groupAfter = change.after && viewerGroup(change.after, after)
  if (groupBefore?.shared === false || groupAfter?.shared === false) {
    return diffViews(viewOf(change.before, before), viewOf(change.after, after), change)
  }
  let diffs = sharedDiffs.get(change)
  if (!diffs) {
    diffs = new Map()
    sharedDiffs.set(change, diffs)
  }
  const group = `${groupBefore?.name}→${groupAfter?.name}`
  let diff = diffs.get(group)
  if (!diff) {
    diff = diffViews(viewOf(change.before, before), viewOf(change.after, after), change)
    diffs.set(group, diff)
  }
  return diff
}

/** The difference that a new zone of the node makes to a service that did not change. */
export function diffForZone(entry: ServiceEntry, before: NodeTopology, after: NodeTopology): ServiceDiff {
  return diffViews(viewOf(entry, before), viewOf(entry, after), { before: entry, after: entry })
}

function diffViews(
  before: ServiceView | undefined,
  after: ServiceView | undefined,
  { before: entryBefore, after: entryAfter }: Pick<ServiceChange, 'before' | 'after'>,
): ServiceDiff {
  const path = (entryAfter ?? entryBefore)?.path ?? ''
  if (!before && !after) return nothing
  if (!before) return { ...nothing, service: after?.service, endpoints: [...(after?.endpoints.values() ?? [])] }
  const deletedEndpoints: DeleteItem[] = []
  for (const endpoint of before.endpoints.keys()) {
    if (!after?.endpoints.has(endpoint)) deletedEndpoints.push({ set: localv1.Set.ENDPOINTS, path: endpoint })
  }
  if (!after) return { ...nothing, deletedEndpoints, deletedService: { set: localv1.Set.SERVICES, path } }
  const endpoints: EndpointItem[] = []
  for (const [endpoint, item] of after.endpoints) {
    const known = before.endpoints.get(endpoint)
    if (!known?.saysTheSame(item)) endpoints.push(item)
  }
  const service = sameService(before.service, after.service) ? undefined : after.service
  return { service, endpoints, deletedEndpoints, deletedService: undefined }
}

/** By content too: a service that was changed and changed back is a new object that says nothing new. */
const sameService = (a: SetItem, b: SetItem): boolean => a === b || Buffer.compare(a.encode(), b.encode()) === 0
