import { none } from '../store/index.js'

/** Those of the things that are on a node. */
export type OnNode<T> = (node: string) => readonly T[]

export function byNode<T extends object>(things: Iterable<T>, nodeOf: (thing: T) => string): OnNode<T> {
  // Nearly always a node has one: a list for each would be most of the index.
  const first = new Map<string, T>()
  const others = new Map<string, T[]>()
  for (const thing of things) {
    const node = nodeOf(thing)
    const more = others.get(node)
    if (more) more.push(thing)
    else if (first.has(node)) others.set(node, [thing])
    else first.set(node, thing)
  }
  return (node) => {
    const one = first.get(node)
    return one ? [one, ...(others.get(node) ?? none)] : none
  }
}
