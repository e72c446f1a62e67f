import type { Frontend } from '@kpng/dataplane'
import { type Elements, splitSetPath, type Transaction, tableFamily } from '@kpng/linux/nftables'
import { frontendKey } from './elements/frontend-elements.js'

/** The Services whose elements a transaction writes, though nothing about them changed: what another program had done is repaired. */
export function repairedServices({ remove, add }: Transaction, frontends: Iterable<Frontend>): string[] {
  const keys = new Set([...keysIn(remove), ...keysIn(add)])
  if (keys.size === 0) return []
  const found = new Set<string>()
  for (const frontend of frontends) {
    if (keys.has(`${tableFamily[frontend.family]} ${frontendKey(frontend)}`)) found.add(frontend.service)
  }
  return [...found]
}

/** In bytes: `address`, `protocol . port`, and `address . protocol . port` of either family. What follows is a slot or a client. */
const keyLengths = [4, 8, 12, 16, 24]

/** What may be the keys of frontends, with the family: an element of a list begins with the key of its frontend. */
function* keysIn(elements: Elements): Generator<string> {
  for (const [path, map] of elements) {
    const { family } = splitSetPath(path)
    for (const key of map.keys()) for (const length of keyLengths) yield `${family} ${key.slice(0, length)}`
  }
}
