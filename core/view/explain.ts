import { type EndpointAnswer, type EndpointScope, localv1, nearestNames, type ServiceAnswer } from '@kpng/api'
import { NodeState, type NodeView } from '@kpng/client'
import type { EndpointRecord, ServiceEntry, Store } from '../store/index.js'
import { portNumbersOf } from './candidates.js'
import { topologyOf } from './node-watch.js'
import { type LeftOutEndpoint, Scope, type SelectedEndpoint, selectEndpoints } from './selection.js'
import { View } from './view.js'

const extraSets = [localv1.Set.NODES, localv1.Set.SERVICE_CIDRS]

/** What a node should do, as of now. The store must be synced. */
export async function nodeViewOf(store: Store, nodeName: string): Promise<NodeView> {
  const watch = new View(store).watchNode({ nodeName, extraSets })
  try {
    const state = new NodeState(nodeName)
    state.apply(await watch.next())
    return state
  } finally {
    watch.close()
  }
}

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
