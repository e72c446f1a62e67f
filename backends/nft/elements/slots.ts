import { tableFamilies } from '../rules/family.js'
import { allListKinds, type ListKind, overName, type SetPath, setPath } from '../rules/names.js'
import { type Elements, put, slotBytes, slotOf } from './element.js'
import type { EndpointList } from './frontend-elements.js'

// The endpoints of a list are numbered 0 … N-1, and a packet draws a number. An endpoint keeps its number if possible, so that the
// cost of a change depends on what changed.

/**
 * The next numbering: an endpoint that stays keeps its slot; a new one takes the slot of one that left, or the next at the end;
 * a slot that is still free is filled with the last endpoint.
 */
export function nextSlots(previous: readonly string[], wanted: readonly string[]): string[] {
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

/** Names a list by its map and its key. */
export const listId = (map: SetPath, key: string): string => `${map} ${key}`

export const idOf = ({ kind, family, key }: EndpointList): string => listId(setPath(family, kind.endpoints), key)

type Where = Pick<EndpointList, 'kind' | 'family' | 'key'>

/** The elements of a list in these slots. */
export function putSlots(elements: Elements, where: Where, slots: readonly string[]): void {
  const path = setPath(where.family, where.kind.endpoints)
  for (const [slot, endpoint] of slots.entries()) put(elements, path, where.key + slotBytes(slot), endpoint)
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
  const path = setPath(where.family, where.kind.endpoints)
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
export function slotsIn(elements: Elements): Map<string, readonly string[]> {
  const table = new Map<string, string[]>()
  for (const [path, map] of elements) {
    const kind = listKindOf(path)
    if (!kind) continue
    for (const [key, data] of map) {
      const list = listId(path, key.slice(0, -4))
      const slot = slotOf(key.slice(-4))
      if (slot >= kind.maxEndpoints) continue
      const slots = table.get(list)
      if (slots) slots[slot] = data
      else {
        const fresh: string[] = []
        fresh[slot] = data
        table.set(list, fresh)
      }
    }
  }
  const whole = new Map<string, readonly string[]>()
  for (const [list, slots] of table) {
    whole.set(
      list,
      Array.from(slots, (endpoint) => endpoint ?? ''),
    )
  }
  return whole
}

const kindsByPath = new Map<SetPath, ListKind>(
  tableFamilies.flatMap((family) =>
    allListKinds.map((kind): [SetPath, ListKind] => [setPath(family, kind.endpoints), kind]),
  ),
)

const listKindOf = (path: SetPath): ListKind | undefined => kindsByPath.get(path)
