import { type Elements, put, slotBytes } from './element.js'
import type { Frontend } from './frontends.js'
import {
  allowedName,
  type ListKind,
  listKinds,
  listSizes,
  names,
  overName,
  rememberChain,
  type SetPath,
  setPath,
} from './names.js'
import { listId } from './slots.js'
import { blocksOf } from './source-blocks.js'

/** Gives the endpoints of a list in the order of their slots. */
export type Arrange = (list: string, endpoints: readonly string[]) => readonly string[]

/** Adds the elements that are a service's own, from where it is reached and who answers there. */
export function putOwn(elements: Elements, frontends: readonly Frontend[], arrange: Arrange): void {
  for (const frontend of frontends) {
    if (frontend.kind === 'nodePort') putNodePort(elements, frontend, arrange)
    else putService(elements, frontend, arrange)
  }
}

/** Adds the elements that count the connections to a service. */
export function putCounted(elements: Elements, frontends: readonly Frontend[]): void {
  for (const { kind, family, key } of frontends) {
    put(elements, setPath(family, kind === 'nodePort' ? names.countedNodePorts : names.counted), key)
  }
}

/** The elements that other services may ask for as well. */
export function sharedOf(frontends: readonly Frontend[]): Elements {
  const elements: Elements = new Map()
  for (const { kind, family, key, endpointsHere } of frontends) {
    if (kind === 'cluster') put(elements, setPath(family, names.clusterIps), key.slice(0, -8))
    for (const address of endpointsHere) put(elements, setPath(family, names.hairpin), address + address)
  }
  return elements
}

function putService(elements: Elements, frontend: Frontend, arrange: Arrange): void {
  const { kind, family, key, local, endpoints, localEndpoints, servedSomewhere, sources, affinitySeconds } = frontend
  const path = (name: string): SetPath => setPath(family, name)
  if (kind !== 'cluster') put(elements, path(local ? names.localServices : names.externalServices), key)
  putList(elements, frontend, listKinds.services, endpoints, arrange)
  if (local) putList(elements, frontend, listKinds.localServices, localEndpoints, arrange)
  // Anything else without an endpoint is refused.
  if (servedSomewhere && (local ? localEndpoints : endpoints).length === 0) put(elements, path(names.dropped), key)
  const blocks = sources?.flatMap((range) => [...blocksOf(range)])
  if (blocks?.every(({ bits }) => bits > 0)) {
    put(elements, path(names.firewalled), key)
    for (const { bits, address } of blocks) put(elements, path(allowedName(bits)), key + address)
  }
  if (affinitySeconds !== undefined) put(elements, path(names.sticky), key, rememberChain(affinitySeconds))
}

function putNodePort(elements: Elements, frontend: Frontend, arrange: Arrange): void {
  const { family, key, local, endpoints, localEndpoints, servedSomewhere, affinitySeconds } = frontend
  const path = (name: string): SetPath => setPath(family, name)
  put(elements, path(local ? names.localNodePorts : names.externalNodePorts), key)
  putList(elements, frontend, listKinds.nodePorts, endpoints, arrange)
  if (local) putList(elements, frontend, listKinds.localNodePorts, localEndpoints, arrange)
  if (servedSomewhere && (local ? localEndpoints : endpoints).length === 0)
    put(elements, path(names.droppedNodePorts), key)
  if (affinitySeconds !== undefined) put(elements, path(names.stickyNodePorts), key, rememberChain(affinitySeconds))
}

function putList(
  elements: Elements,
  { family, key }: Frontend,
  kind: ListKind,
  endpoints: readonly string[],
  arrange: Arrange,
): void {
  const path = setPath(family, kind.endpoints)
  const slots = arrange(listId(path, key), endpoints)
  for (const [slot, endpoint] of slots.entries()) put(elements, path, key + slotBytes(slot), endpoint)
  for (const size of listSizes) {
    if (slots.length <= size) break
    put(elements, setPath(family, overName(kind, size)), key)
  }
}
