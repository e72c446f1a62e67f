import type { Family } from './address.js'
import type { FieldKind, SetShape } from './names.js'

/** Clients that are remembered at once, per family; more are simply not remembered. The kernel takes 16 bytes for each at the start. */
const affinityEntries = 131_072

const types = (family: Family): Readonly<Record<FieldKind, string>> => ({
  address: family === 'ip' ? 'ipv4_addr' : 'ipv6_addr',
  protocol: 'inet_proto',
  port: 'inet_service',
  slot: '',
})

const expressions = (family: Family): Readonly<Record<FieldKind, string>> => ({
  address: `${family} daddr`,
  protocol: 'meta l4proto',
  port: 'th dport',
  slot: 'numgen random mod 2',
})

/** A set or map as `nft -f` reads it. */
export function setDefinition(
  family: Family,
  name: string,
  { key, data, interval, dynamic, counter }: SetShape,
): string {
  // Slots and endpoints have no named type, only the type of an expression.
  const type =
    data === 'endpoint'
      ? `typeof ${key.map((field) => expressions(family)[field]).join(' . ')} : ${family} daddr . th dport;`
      : `type ${key.map((field) => types(family)[field]).join(' . ')}${data === 'chain' ? ' : verdict' : ''};`
  const flags = interval ? ' flags interval;' : dynamic ? ` flags dynamic,timeout; size ${affinityEntries};` : ''
  return `  ${data ? 'map' : 'set'} ${name} { ${type}${flags}${counter ? ' counter;' : ''} }`
}
