import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { globalv1, type Log, localv1, messageOf, silentLog } from '@kpng/api'
import type { ChangeSet, ChangeSetSource, SetItem, Timeline } from '../change-set.js'
import type { ClientOptions } from '../options.js'
import { operationsOf } from './connect.js'

/** Change sets of one node from a server over gRPC. */
export function changeSetsOverGrpc(options: ClientOptions): ChangeSetSource {
  return async function* ({ nodeName, extraSets = [], timeline = false }, signal): AsyncGenerator<ChangeSet> {
    const log = options.log ?? silentLog
    const usual = { nodeName, extraSets: [...extraSets], timeline }
    const request = (known?: localv1.Known) =>
      toBinary(localv1.WatchReqSchema, create(localv1.WatchReqSchema, { ...usual, ...(known && { known }) }))
    for await (const operations of operationsOf({ ...options, log, signal, method: '/localv1.Sets/Watch', request })) {
      yield {
        reset: operations.reset,
        sets: operations.sets.flatMap((value) => decode(value, log) ?? []),
        deletes: operations.deletes,
        triggers: operations.triggers.map(({ service, unixMs }) => ({ service, unixMs: Number(unixMs) })),
        ...(operations.timeline && !operations.reset ? { timeline: timelineOf(operations.timeline) } : {}),
      }
    }
  }
}

const timelineOf = ({ revision, receivedAtMs, committedAtMs, viewedAtMs }: localv1.Timeline): Timeline => ({
  revision: Number(revision),
  receivedAtMs: receivedAtMs || undefined,
  committedAtMs,
  viewedAtMs,
})

function decode({ ref, bytes }: localv1.Value, log: Log): SetItem | undefined {
  if (!ref) return undefined
  const { set, path } = ref
  try {
    switch (set) {
      case localv1.Set.SERVICES:
        return { set, path, message: fromBinary(localv1.ServiceSchema, bytes) }
      case localv1.Set.ENDPOINTS:
        return { set, path, message: fromBinary(localv1.EndpointSchema, bytes) }
      case localv1.Set.SERVICE_CIDRS:
        return { set, path, message: fromBinary(localv1.ServiceCIDRSchema, bytes) }
      case localv1.Set.NODES:
        return { set, path, message: fromBinary(globalv1.NodeSchema, bytes) }
      default:
        log.detail(1, 'An item of an unknown set is skipped', { set, path })
        return undefined
    }
  } catch (error) {
    log.error('An item that cannot be decoded is skipped', { set: localv1.Set[set], path, error: messageOf(error) })
    return undefined
  }
}
