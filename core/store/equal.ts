import { isDeepStrictEqual } from 'node:util'
import type { EndpointRecord, Hints, ServiceEntry } from './records.js'

/** Whether two messages say the same. */
export const sameMessage = (a: unknown, b: unknown): boolean => a === b || isDeepStrictEqual(a, b)

export function sameStrings(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((value, index) => value === b[index]))
}

const sameHints = (a: Hints | undefined, b: Hints | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && sameStrings(a.zones, b.zones) && sameStrings(a.nodes, b.nodes))

export const samePorts = (a: EndpointRecord['ports'], b: EndpointRecord['ports']): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    a.length === b.length &&
    a.every(({ name, port, protocol }, index) => {
      const other = b[index]
      return name === other?.name && port === other.port && protocol === other.protocol
    }))

/** Compared field by field: this runs for every endpoint of every slice update, most of which change nothing. */
export function sameEndpoint(a: EndpointRecord, b: EndpointRecord): boolean {
  return (
    a === b ||
    (a.podName === b.podName &&
      a.hostname === b.hostname &&
      a.node === b.node &&
      a.zone === b.zone &&
      a.conditions.ready === b.conditions.ready &&
      a.conditions.serving === b.conditions.serving &&
      a.conditions.terminating === b.conditions.terminating &&
      sameStrings(a.v4, b.v4) &&
      sameStrings(a.v6, b.v6) &&
      samePorts(a.ports, b.ports) &&
      sameHints(a.hints, b.hints))
  )
}

/**
 * The records to keep for a source: an incoming record that says the same as a stored one is replaced by it, so that whoever
 * compares later sees at once, by identity, what did not change. Returns `before` itself when nothing changed.
 */
export function reuseEndpoints(
  before: readonly EndpointRecord[] | undefined,
  incoming: readonly EndpointRecord[],
): readonly EndpointRecord[] {
  if (!before || before === incoming) return incoming
  let stored: ReadonlyMap<string, readonly EndpointRecord[]> | undefined
  const after = incoming.map((record, index) => {
    // Nearly all are where they were.
    const there = before[index]
    if (there && sameEndpoint(there, record)) return there
    stored ??= byAddress(before)
    return stored.get(addressOf(record))?.find((known) => sameEndpoint(known, record)) ?? record
  })
  const unchanged = after.length === before.length && after.every((record, index) => record === before[index])
  return unchanged ? before : after
}

/** One address may be there more than once, with other ports. */
function byAddress(records: readonly EndpointRecord[]): Map<string, EndpointRecord[]> {
  const found = new Map<string, EndpointRecord[]>()
  for (const record of records) {
    const known = found.get(addressOf(record))
    if (known) known.push(record)
    else found.set(addressOf(record), [record])
  }
  return found
}

const addressOf = (record: EndpointRecord): string => record.v4[0] ?? record.v6[0] ?? ''

const sameEndpoints = (a: readonly EndpointRecord[], b: readonly EndpointRecord[]): boolean =>
  a === b || (a.length === b.length && a.every((record, index) => sameEndpoint(record, b[index] as EndpointRecord)))

/** Whether two entries say the same, though they may be different objects. */
export function sameEntry(a: ServiceEntry, b: ServiceEntry): boolean {
  if (!sameMessage(a.service, b.service) || a.sources.size !== b.sources.size) return false
  return [...b.sources].every(([name, endpoints]) => {
    const before = a.sources.get(name)
    return before !== undefined && sameEndpoints(before, endpoints)
  })
}
