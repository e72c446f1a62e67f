/** A prime, so that every step visits every slot. */
export const maglevSlots = 1021

/**
 * A table of Maglev hashing (Eisenbud et al., NSDI 2016): each name has about the same number of slots, and when a name comes or goes, few slots
 * of the others change. The same names give the same table, in whatever order.
 * @returns for each slot, a name
 */
export function maglevTable(names: readonly string[]): string[] {
  const walks = [...names].sort().map((name) => ({
    name,
    at: hash(name, 0x811c9dc5) % maglevSlots,
    step: (hash(name, 0x1234567) % (maglevSlots - 1)) + 1,
  }))
  const table: string[] = new Array(names.length === 0 ? 0 : maglevSlots)
  for (let filled = 0; filled < table.length; ) {
    for (const walk of walks) {
      while (table[walk.at] !== undefined) walk.at = (walk.at + walk.step) % maglevSlots
      table[walk.at] = walk.name
      if (++filled === table.length) break
    }
  }
  return table
}

/** FNV-1a, mixed once more at the end. */
function hash(text: string, seed: number): number {
  let value = seed
  for (let index = 0; index < text.length; index++) value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  value ^= value >>> 15
  return Math.imul(value, 0x85ebca6b) >>> 0
}
