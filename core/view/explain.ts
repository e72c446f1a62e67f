import {
  type EndpointAnswer,
  type EndpointReason,
  type EndpointScope,
  nearestNames,
  type ServiceAnswer,
} from '@kpng/api'
import { type EndpointRecord, followStore, type ServiceEntry, type Store } from '../store/index.js'
import { portNumbersOf } from './candidates.js'
import { topologyOf } from './node-watch.js'
import { type LeftOutEndpoint, Scope, type SelectedEndpoint, selectEndpoints } from './selection.js'

/** What a node uses of a Service's endpoints, and why it does not use the others. It is the same selection that nodes are served by. */
export function explainService(store: Store, path: string, nodeName: string): ServiceAnswer {
  const entry = store.entry(path)
  if (!entry?.service) return { service: path, isKnown: false, nearest: similarServices(store, path), endpoints: [] }
  const node = topologyOf(nodeName, store.node(nodeName))
  const slices = sliceOfEndpoint(entry)
  const { used, leftOut } = selectEndpoints(entry.service, [...entry.sources.values()].flat(), node)
  const describe = (each: SelectedEndpoint | LeftOutEndpoint): EndpointAnswer => ({
    ...factsOf(each.endpoint, entry, node.name, slices.get(each.endpoint) ?? ''),
    ...('reason' in each ? { scopes: [], reason: each.reason } : usesOf(each)),
  })
  return { service: path, isKnown: true, nearest: [], endpoints: [...used, ...leftOut].map(describe) }
}

function factsOf(endpoint: EndpointRecord, { service }: ServiceEntry, nodeName: string, slice: string) {
  const { v4, v6, podName, node, zone, conditions } = endpoint
  return {
    ips: [...v4, ...v6],
    ports: service ? portNumbersOf(service, endpoint.ports) : [],
    pod: podName,
    node,
    zone,
    slice,
    ...conditions,
    isLocal: node !== '' && node === nodeName,
  }
}

/** An endpoint that only drains gets no new connections: to somebody who asks, it is terminating. */
function usesOf({ scopes }: SelectedEndpoint): Pick<EndpointAnswer, 'scopes' | 'reason'> {
  const names = (Object.keys(Scope) as EndpointScope[]).filter((name) => (scopes & Scope[name]) !== 0)
  return names.length > 0 ? { scopes: names } : { scopes: names, reason: 'terminating' }
}

function sliceOfEndpoint({ sources }: ServiceEntry): Map<EndpointRecord, string> {
  const slices = new Map<EndpointRecord, string>()
  for (const [slice, endpoints] of sources) for (const endpoint of endpoints) slices.set(endpoint, slice)
  return slices
}

/** The same name in another namespace comes first: it is the most likely mistake. */
function similarServices(store: Store, path: string): string[] {
  const paths = store.entries().flatMap((entry) => (entry.service ? [entry.path] : []))
  const at = path.indexOf('/') + 1
  const [namespace, name] = [path.slice(0, at), path.slice(at)]
  const elsewhere = paths.filter((other) => other.endsWith(`/${name}`))
  const beside = paths.flatMap((other) => (other.startsWith(namespace) ? [other.slice(at)] : []))
  return [...elsewhere, ...nearestNames(name, beside).map((near) => `${namespace}${near}`)].slice(0, 3)
}

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
