import {
  type ElementMap,
  type Elements,
  mapAt,
  put,
  type SetPath,
  setPath,
  slotBytes,
  slotOf,
  tableFamilies,
} from '@kpng/linux/nftables'
import { allListKinds, type ListKind, overName } from '../rules/names.js'
import type { EndpointList } from './frontend-elements.js'

// The endpoints of a list are numbered 0 … N-1, and a packet draws a number. An endpoint keeps its number if possible, so that the
// cost of a change depends on what changed.

/**
 * The next numbering: an endpoint that stays keeps its slot; a new one takes the slot of one that left, or the next at the end;
 * a slot that is still free is filled with the last endpoint.
 */
export function nextSlots(previous: readonly string[], wanted: readonly string[]): readonly string[] {
  if (previous.length === 0) return wanted
  const missing = new Set(wanted)
  const slots: (string | undefined)[] = previous.map((endpoint) => (missing.delete(endpoint) ? endpoint : undefined))
  const arrivals = missing.values()
  for (let slot = 0; slot < slots.length; slot++) {
    if (slots[slot] !== undefined) continue
    const arrival = arrivals.next()
    if (!arrival.done) {
      slots[slot] = arrival.value
      continue
    }
    while (slots.length > slot && slots.at(-1) === undefined) slots.pop()
    if (slots.length > slot) slots[slot] = slots.pop()
  }
  slots.push(...arrivals)
  return slots as string[]
}

/** The numbered endpoints of each list: by its map, then by its key. */
export type Slots = Map<SetPath, Map<string, readonly string[]>>

type Where = Pick<EndpointList, 'kind' | 'family' | 'key'>

/** The map that holds the endpoints of a list. */
export const pathOf = ({ family, kind }: Where): SetPath => setPath(family, kind.endpoints)

/** The elements of a list in these slots. */
export function putSlots(elements: Elements, where: Where, slots: readonly string[]): void {
  const map = mapAt(elements, pathOf(where))
  for (let slot = 0; slot < slots.length; slot++) map.set(where.key + slotBytes(slot), slots[slot] as string)
  putSizes(elements, where, slots.length)
}

/** The elements that differ between two numberings of one list; only those are built. */
export function putSlotChanges(
  before: Elements,
  after: Elements,
  where: Where,
  old: readonly string[],
  now: readonly string[],
): void {
  const path = pathOf(where)
  for (let slot = 0; slot < Math.max(old.length, now.length); slot++) {
    const [was, is] = [old[slot], now[slot]]
    if (was === is) continue
    const key = where.key + slotBytes(slot)
    if (was !== undefined) put(before, path, key, was)
    if (is !== undefined) put(after, path, key, is)
  }
  putSizes(before, where, old.length)
  putSizes(after, where, now.length)
}

/** Which chain draws from a list depends on its size: see draw.ts. */
function putSizes(elements: Elements, { kind, family, key }: Where, count: number): void {
  for (const size of kind.sizes) {
    if (count <= size) return
    put(elements, setPath(family, overName(kind, size)), key)
  }
}

/** The slots of the elements in the kernel, by list. A gap is an empty string; only changes by others can cause one. */
export function slotsIn(elements: Elements): Slots {
  const found: Slots = new Map()
  for (const [path, map] of elements) {
    const kind = listKindOf(path)
    if (kind) found.set(path, slotsInMap(map, kind.maxEndpoints))
  }
  return found
}

function slotsInMap(map: ElementMap, maxEndpoints: number): Map<string, readonly string[]> {
  const lists = new Map<string, string[]>()
  for (const [key, data] of map) {
    const slot = slotOf(key.slice(-4))
    if (slot >= maxEndpoints) continue
    const list = key.slice(0, -4)
    const slots = lists.get(list) ?? []
    if (slots.length === 0) lists.set(list, slots)
    while (slots.length <= slot) slots.push('')
    slots[slot] = data
  }
  return lists
}

const kindsByPath = new Map<SetPath, ListKind>(
  tableFamilies.flatMap((family) =>
    allListKinds.map((kind): [SetPath, ListKind] => [setPath(family, kind.endpoints), kind]),
  ),
)

const listKindOf = (path: SetPath): ListKind | undefined => kindsByPath.get(path)
