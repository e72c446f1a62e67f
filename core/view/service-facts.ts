import type { EndpointReason } from '@kpng/api'
import { followStore, type Store } from '../store/index.js'
import { topologyOf } from './node-watch.js'
import { selectEndpoints } from './selection.js'

const nothing: ReadonlyMap<string, EndpointReason> = new Map()

/** `serviceFacts` for one node, and the Services for which they may have changed; undefined: any. */
export const serviceFactsOf = (store: Store, nodeName: string) =>
  Object.assign((path: string, used: number) => serviceFacts(store, path, nodeName, used), {
    onChange: (listener: (paths: Iterable<string> | undefined) => void) =>
      followStore(store, (range) => listener(range?.services.keys())),
  })

/**
 * Which endpoints of a Service a node does not use, and why: by the same selection that nodes are served by. Undefined if there is no such
 * Service.
 * @param used how many the node uses. If that is all, and all are ready, nothing is left out and nothing has to be selected again.
 */
export function serviceFacts(store: Store, path: string, nodeName: string, used: number) {
  const entry = store.entry(path)
  if (!entry?.service) return undefined
  let total = 0
  let allReady = true
  for (const endpoints of entry.sources.values()) {
    total += endpoints.length
    allReady &&= endpoints.every(({ conditions }) => conditions.ready && !conditions.terminating)
  }
  if (allReady && used === total) return { total, reasons: nothing, leftOut: {}, onlyStandIns: false }
  const node = topologyOf(nodeName, store.node(nodeName))
  const selected = selectEndpoints(entry.service, [...entry.sources.values()].flat(), node)
  // One that drains gets no new connections.
  const serving = selected.used.filter(({ scopes }) => scopes !== 0)
  const draining = selected.used.filter(({ scopes }) => scopes === 0)
  const reasons = new Map<string, EndpointReason>()
  const leftOut: Partial<Record<EndpointReason, number>> = {}
  for (const { endpoint, reason } of [...selected.leftOut, ...draining.map(asTerminating)]) {
    for (const ip of [...endpoint.v4, ...endpoint.v6]) reasons.set(ip, reason)
    leftOut[reason] = (leftOut[reason] ?? 0) + 1
  }
  const onlyStandIns = serving.length > 0 && serving.every(({ endpoint }) => endpoint.conditions.terminating)
  return { total, reasons, leftOut, onlyStandIns }
}

const asTerminating = <Endpoint>({ endpoint }: { endpoint: Endpoint }) => ({
  endpoint,
  reason: 'terminating' as const,
})
