import { localv1 } from '@kpng/api'
import { none } from '../store/index.js'
import type { DeleteItem, EndpointItem, ServiceItem } from './items.js'
import type { ServiceView } from './service-view.js'
import type { NodeServiceView } from './service-views.js'

/** What a node must be told about one service. */
export interface ServiceDiff {
  readonly service: ServiceItem | undefined
  readonly endpoints: readonly EndpointItem[]
  readonly deletedEndpoints: readonly DeleteItem[]
  readonly deletedService: DeleteItem | undefined
}

const nothing: ServiceDiff = { service: undefined, endpoints: [], deletedEndpoints: [], deletedService: undefined }

export const isEmpty = (diff: ServiceDiff): boolean =>
  !diff.service && diff.endpoints.length === 0 && diff.deletedEndpoints.length === 0 && !diff.deletedService

/**
 * The difference between two views, worked out once for all who go from the one to the other. Undefined stands for a service that
 * is not there. Everybody goes to the newest view, so a view that is left needs to remember one difference.
 */
export function sharedDiff(before: ServiceView | undefined, after: ServiceView | undefined): ServiceDiff {
  if (!before) return diffViews(before, after)
  if (!before.lastDiff || before.lastDiff.to !== after) {
    before.lastDiff = { to: after, diff: diffViews(before, after) }
  }
  return before.lastDiff.diff
}

function diffViews(before: ServiceView | undefined, after: ServiceView | undefined): ServiceDiff {
  if (before === after) return nothing
  if (!before) return { ...nothing, service: after?.service, endpoints: after?.items ?? [] }
  const deletedEndpoints = before.items.filter(({ path }) => !after?.get(path)).map(deleteEndpoint)
  if (!after) {
    return { ...nothing, deletedEndpoints, deletedService: { set: localv1.Set.SERVICES, path: before.service.path } }
  }
  const endpoints = after.items.filter((item) => !before.get(item.path)?.saysTheSame(item))
  const service = sameService(before.service, after.service) ? undefined : after.service
  return { service, endpoints, deletedEndpoints, deletedService: undefined }
}

/** The diff of what a node shares with others, put right where it sees endpoints of its own: before, after or both. */
export function withOwnEndpoints(
  shared: ServiceDiff,
  before: NodeServiceView | undefined,
  after: NodeServiceView | undefined,
): ServiceDiff {
  const [ownBefore, ownAfter] = [before?.own ?? none, after?.own ?? none]
  if (ownBefore.length + ownAfter.length === 0) return shared
  const paths = new Set([...ownBefore, ...ownAfter].map(({ path }) => path))
  const endpoints = shared.endpoints.filter(({ path }) => !paths.has(path))
  const deletedEndpoints = shared.deletedEndpoints.filter(({ path }) => !paths.has(path))
  for (const path of paths) {
    const known = before && itemAt(before, path)
    const item = after && itemAt(after, path)
    if (known && !item) deletedEndpoints.push(deleteEndpoint(known))
    if (item && !known?.saysTheSame(item)) endpoints.push(item)
  }
  return { ...shared, endpoints, deletedEndpoints }
}

const itemAt = ({ shared, own }: NodeServiceView, path: string): EndpointItem | undefined =>
  own.find((item) => item.path === path) ?? shared.get(path)

const deleteEndpoint = ({ path }: EndpointItem): DeleteItem => ({ set: localv1.Set.ENDPOINTS, path })

/** By content too: a service that was changed and changed back is a new object that says nothing new. */
const sameService = (a: ServiceItem, b: ServiceItem): boolean => a === b || Buffer.compare(a.encode(), b.encode()) === 0
