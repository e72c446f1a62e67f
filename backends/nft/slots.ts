import { type Elements, slotOf } from './element.js'
import { allListKinds, maxEndpoints, type SetPath } from './names.js'

// The endpoints of a list are numbered 0 … N-1, and a packet draws a number. Numbers are kept as far as possible, so that a
// change costs what changed and not what exists.

/**
 * The next numbering: who stays keeps its slot; who comes takes the slot of one who went, else a new one at the end; a slot
 * that is still free after that is taken by the last.
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

/** Which endpoint has which slot, list by list. A list is named by its map and its key. */
export type SlotTable = Map<string, readonly string[]>

export const listId = (map: SetPath, key: string): string => `${map} ${key}`

export function splitListId(list: string): [map: SetPath, key: string] {
  const space = list.indexOf(' ', list.indexOf(' ') + 1)
  return [list.slice(0, space) as SetPath, list.slice(space + 1)]
}

/** The slots that elements of the kernel show. A gap, which only drift can make, is an empty string. */
export function slotsIn(elements: Elements): SlotTable {
  const table = new Map<string, string[]>()
  for (const [path, map] of elements) {
    if (!allListKinds.some(({ endpoints }) => path.endsWith(` ${endpoints}`))) continue
    for (const [key, data] of map) {
      const list = listId(path, key.slice(0, -4))
      const slot = slotOf(key.slice(-4))
      if (slot >= maxEndpoints) continue
      const slots = table.get(list)
      if (slots) slots[slot] = data
      else {
        const fresh: string[] = []
        fresh[slot] = data
        table.set(list, fresh)
      }
    }
  }
  for (const [list, slots] of table)
    table.set(
      list,
      Array.from(slots, (endpoint) => endpoint ?? ''),
    )
  return table
}
