import { type Frontend, isWholeAddress } from '@kpng/dataplane'
import { addressText, allowedElements, tableFamily } from '@kpng/linux/nftables'
import type { Marks } from './names.js'
import { type Entrance, entrancesOf, marksOf } from './virtual-servers.js'

// What the constant rules have to know about a frontend: elements of sets and maps.

/** An element of a set or map of one family. */
export interface Element {
  readonly set: string
  readonly key: string
  /** In maps. */
  readonly value?: string
}

/** The elements of a frontend, without those that belong to its addresses. */
export function elementsOf(frontend: Frontend, nodePortAddresses: readonly string[], marks: Marks): Element[] {
  return [
    ...entrancesOf(frontend, nodePortAddresses).flatMap((entrance) => entranceElements(frontend, entrance, marks)),
    ...hairpinElements(frontend),
  ]
}

function entranceElements(frontend: Frontend, entrance: Entrance, marks: Marks): Element[] {
  const { address, protocol, port } = entrance
  const isWhole = isWholeAddress(frontend)
  const key = isWhole ? `${address} . ${protocol}` : `${address} . ${protocol} . ${port}`
  const found: Element[] = []
  const put = (set: string, more: { key?: string; value?: string } = {}) =>
    void found.push({ set: isWhole ? `whole-${set}` : set, key, ...more })
  const { inside, outside, allowedSources, masquerade } = frontend
  put('servers')
  for (const [audience, name] of [
    [inside, 'inside'],
    [outside, 'outside'],
  ] as const) {
    if (audience.endpoints.length > 0) continue
    put(`refused-${name}`, { value: audience.otherwise === 'drop' ? 'drop' : 'goto refuse' })
  }
  const { inside: insideMark, outside: outsideMark } = marksOf(frontend, protocol, marks)
  if (insideMark !== undefined) put('marks-inside', { value: hex(insideMark) })
  if (outsideMark !== undefined) put('marks-outside', { value: hex(outsideMark) })
  const allowed = allowedSources && allowedElements(tableFamily[frontend.family], '', allowedSources)
  if (allowed) {
    put('restricted')
    for (const [set, source] of allowed) put(set, { key: `${key} . ${addressText(source)}` })
  }
  // The marks of a whole address say who is masqueraded.
  if (!isWhole && masquerade !== 'node') put(masquerade === 'always' ? 'masquerade-all' : 'masquerade-others')
  return found
}

/** A pod that reaches itself must see its node as the client, or it would answer itself directly. */
const hairpinElements = ({ inside, outside }: Frontend): Element[] =>
  [...new Set([...inside.endpoints, ...outside.endpoints].filter(({ isLocal }) => isLocal).map(({ ip }) => ip))].map(
    (ip) => ({ set: 'hairpin', key: `${ip} . ${ip}` }),
  )

const hex = (mark: number): string => `0x${mark.toString(16)}`
