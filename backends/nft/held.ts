import { hostPort } from '@kpng/api'
import type { FrontendAddress, HeldFrontend } from '@kpng/client'
import { isWholeAddress } from '@kpng/dataplane'
import {
  addressBytes,
  addressBytesIn,
  addressText,
  portOf,
  type SetPath,
  setPath,
  slotBytes,
  type Tables,
  tableFamily,
} from '@kpng/linux/nftables'
import { frontendKey, listKindsOf, setsOf } from './elements/frontend-elements.js'
import { type ListKind, names } from './rules/names.js'

/** Reads back what the kernel's sets hold for one frontend, element by element. The cost depends on this frontend only. */
export async function readHeld(kernel: Tables, frontend: FrontendAddress): Promise<HeldFrontend | undefined> {
  const family = tableFamily[frontend.family]
  const key = frontendKey(frontend)
  const path = (name: string): SetPath => setPath(family, name)
  const has = async (name: string | undefined, element = key) =>
    name !== undefined && (await kernel.lookUp(path(name), element)) !== undefined
  const sets = setsOf(frontend)
  const [all, local] = listKindsOf(frontend)
  const isLocal = await has(sets.local)
  const isThere = isLocal || (await has(sets.external)) || (await isServedClusterIp(kernel, frontend))
  if (!isThere) return undefined
  const endpoints = (kind: ListKind) => readList(kernel, path(kind.endpoints), key)
  const inside = await endpoints(all)
  const affinity = (await has(sets.sticky)) ? await clientsOf(kernel, frontend) : undefined
  const counted = frontend.kind === 'nodePort' ? names.countedNodePorts : names.counted
  const counts = kernel.ruleset.sets[family].has(counted)
  const connections = counts ? (await kernel.packetsBeside(path(counted))).get(key) : undefined
  return {
    inside,
    outside: isLocal ? await endpoints(local) : inside,
    otherwise: (await has(sets.dropped)) ? 'drop' : 'refuse',
    ...(affinity ? { sessionAffinity: affinity } : {}),
    ...(connections === undefined ? {} : { connections }),
  }
}

/** A cluster IP with a port is served if the address is known; a port without an endpoint is refused. */
async function isServedClusterIp(kernel: Tables, frontend: FrontendAddress): Promise<boolean> {
  if (frontend.kind !== 'clusterIP' || isWholeAddress(frontend)) return false
  const path = setPath(tableFamily[frontend.family], names.clusterIps)
  return (await kernel.lookUp(path, addressBytes(frontend.address))) !== undefined
}

/** A list ends after this many empty slots in a row. Only changes by others leave a gap, and a gap must not hide the rest. */
const emptySlots = 16

async function readList(kernel: Tables, path: SetPath, key: string): Promise<string[]> {
  const endpoints: string[] = []
  for (let slot = 0, empty = 0; empty < emptySlots; slot++) {
    const data = await kernel.lookUp(path, key + slotBytes(slot))
    if (data === undefined) empty++
    else {
      endpoints.push(endpointText(data))
      empty = 0
    }
  }
  return endpoints
}

/** `address . port`, or an address alone. */
const endpointText = (data: string): string =>
  data.length === 4 || data.length === 16
    ? addressText(data)
    : hostPort(addressText(data.slice(0, -4)), portOf(data.slice(-4)))

async function clientsOf(kernel: Tables, frontend: FrontendAddress): Promise<{ client: string; endpoint: string }[]> {
  const family = tableFamily[frontend.family]
  const key = frontendKey(frontend)
  const addressLength = addressBytesIn[family]
  const found: { client: string; endpoint: string }[] = []
  for (const [remembered, endpoint] of await kernel.readBeside(setPath(family, names.affinity))) {
    // A node port is remembered with the address of the node that the client used.
    const own = remembered.slice(frontend.kind === 'nodePort' ? 2 * addressLength : addressLength)
    if (own === key) {
      found.push({ client: addressText(remembered.slice(0, addressLength)), endpoint: endpointText(endpoint) })
    }
  }
  return found
}
