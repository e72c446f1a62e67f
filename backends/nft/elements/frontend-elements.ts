import type { FrontendAddress } from '@kpng/client'
import { type Frontend, type FrontendEndpoint, isWholeAddress } from '@kpng/dataplane'
import {
  addressBytes,
  allowedElements,
  type Elements,
  gotoVerdict,
  portBytes,
  protocolBytes,
  put,
  type SetPath,
  setPath,
  type TableFamily,
  tableFamily,
} from '@kpng/linux/nftables'
import { type ListKind, listKinds, names, rememberChain } from '../rules/names.js'

// A frontend as elements of the sets and maps in names.ts.

/** The endpoints for one audience of a frontend, in the map of that kind. */
export interface EndpointList {
  readonly kind: ListKind
  readonly family: TableFamily
  /** The frontend's key, without a slot. */
  readonly key: string
  /** Data of the map. */
  readonly endpoints: readonly string[]
}

/** `address . protocol . port`; `protocol . port` for a node port; `address` if the Service has the whole address. */
export function frontendKey({ kind, address, protocol, port }: FrontendAddress): string {
  if (protocol === 'any') return addressBytes(address)
  const key = protocolBytes(protocol) + portBytes(port)
  return kind === 'nodePort' ? key : addressBytes(address) + key
}

/** `address . port`; without the port if the client's is kept. */
export const endpointData = ({ ip, port }: Pick<FrontendEndpoint, 'ip' | 'port'>): string =>
  port === 0 ? addressBytes(ip) : addressBytes(ip) + portBytes(port)

/** Whether clients from outside have their own list. Otherwise one list serves all clients. */
export const isLocalPolicy = ({ inside, outside }: Frontend): boolean => inside !== outside

/** The sets and maps that a kind of frontend uses. */
export const setsOf = (where: FrontendAddress) => {
  if (isWholeAddress(where)) {
    const external = where.kind === 'clusterIP' ? names.wholeClusterIps : names.externalAddresses
    return { external, local: names.localAddresses, dropped: names.droppedAddresses, sticky: undefined }
  }
  if (where.kind === 'nodePort') {
    const { externalNodePorts: external, localNodePorts: local, droppedNodePorts: dropped } = names
    return { external, local, dropped, sticky: names.stickyNodePorts }
  }
  const external = where.kind === 'clusterIP' ? undefined : names.externalServices
  return { external, local: names.localServices, dropped: names.dropped, sticky: names.sticky }
}

/** The kinds of the lists that a frontend has: for everybody (or, under policy Local, those inside), and for outside. */
export function listKindsOf(where: FrontendAddress): readonly [all: ListKind, local: ListKind] {
  if (isWholeAddress(where)) return [listKinds.addresses, listKinds.localAddresses]
  if (where.kind === 'nodePort') return [listKinds.nodePorts, listKinds.localNodePorts]
  return [listKinds.services, listKinds.localServices]
}

export function listsOf(frontend: Frontend): EndpointList[] {
  const [all, local] = listKindsOf(frontend)
  const family = tableFamily[frontend.family]
  const key = frontendKey(frontend)
  const list = (kind: ListKind, endpoints: readonly FrontendEndpoint[]): EndpointList => ({
    ...{ kind, family, key },
    endpoints: endpoints.slice(0, kind.maxEndpoints).map(endpointData),
  })
  const lists = [list(all, frontend.inside.endpoints)]
  if (isLocalPolicy(frontend)) lists.push(list(local, frontend.outside.endpoints))
  return lists
}

/** The elements that belong to one frontend alone, without its endpoints. */
export function putOwn(elements: Elements, frontend: Frontend, counters: boolean): void {
  const { outside, allowedSources, sessionAffinitySeconds } = frontend
  const key = frontendKey(frontend)
  const path = (name: string): SetPath => setPath(tableFamily[frontend.family], name)
  const sets = setsOf(frontend)
  const policy = isLocalPolicy(frontend) ? sets.local : sets.external
  if (policy) put(elements, path(policy), key)
  // A key without an endpoint is refused, unless it is in this set.
  if (outside.endpoints.length === 0 && outside.otherwise === 'drop') put(elements, path(sets.dropped), key)
  const allowed = allowedSources && allowedElements(tableFamily[frontend.family], key, allowedSources)
  if (allowed) {
    put(elements, path(names.firewalled), key)
    for (const [name, source] of allowed) put(elements, path(name), source)
  }
  if (sessionAffinitySeconds !== undefined && sets.sticky) {
    put(elements, path(sets.sticky), key, gotoVerdict(rememberChain(sessionAffinitySeconds)))
  }
  if (!counters || isWholeAddress(frontend)) return
  put(elements, path(frontend.kind === 'nodePort' ? names.countedNodePorts : names.counted), key)
}

/** The elements that several frontends may ask for. One may come twice. */
export function sharedOf(frontend: Frontend): [SetPath, string][] {
  const shared: [SetPath, string][] = []
  const add = (name: string, key: string) => shared.push([setPath(tableFamily[frontend.family], name), key])
  if (frontend.kind === 'clusterIP' && !isWholeAddress(frontend)) add(names.clusterIps, addressBytes(frontend.address))
  for (const { endpoints } of isLocalPolicy(frontend) ? [frontend.inside, frontend.outside] : [frontend.inside]) {
    for (const { ip, isLocal } of endpoints) if (isLocal) add(names.hairpin, addressBytes(ip).repeat(2))
  }
  return shared
}

/** What nftables cannot do for a frontend, as a sentence. The frontend is then served in part, or not at all. */
export function limitOf(frontend: Frontend): { readonly problem: string; readonly isServed: boolean } | undefined {
  const [{ maxEndpoints }] = listKindsOf(frontend)
  if (isWholeAddress(frontend) && frontend.allowedSources) {
    return { problem: 'source ranges need ports, and the Service has the whole address', isServed: false }
  }
  if (isWholeAddress(frontend) && frontend.sessionAffinitySeconds !== undefined) {
    return { problem: 'session affinity needs ports, and the Service has the whole address', isServed: true }
  }
  if (frontend.inside.endpoints.length <= maxEndpoints) return undefined
  return {
    problem: `it has more than ${maxEndpoints} endpoints, and only the first ${maxEndpoints} are used`,
    isServed: true,
  }
}

/** Whether nftables can serve a frontend at all. */
export const isServed = (frontend: Frontend): boolean => limitOf(frontend)?.isServed ?? true
