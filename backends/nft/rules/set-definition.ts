import type { TableFamily } from './family.js'
import type { FieldKind, SetShape } from './names.js'

/** How many clients are remembered per family; further clients have no session affinity. The kernel reserves 16 bytes per client. */
const affinityEntries = 131_072

const types = (family: TableFamily): Readonly<Record<FieldKind, string>> => ({
  address: family === 'ip' ? 'ipv4_addr' : 'ipv6_addr',
  protocol: 'inet_proto',
  port: 'inet_service',
  slot: '',
})

const expressions = (family: TableFamily): Readonly<Record<FieldKind, string>> => ({
  address: `${family} daddr`,
  protocol: 'meta l4proto',
  port: 'th dport',
  slot: 'numgen random mod 2',
})

/** A set or map as `nft -f` reads it. */
export function setDefinition(
  family: TableFamily,
  name: string,
  { key, data, interval, dynamic, counter }: SetShape,
): string {
  // Slots and endpoints have no named type, only the type of an expression.
  const endpoint = data === 'endpoint' ? ' . th dport' : ''
  const type =
    data === 'endpoint' || data === 'address'
      ? `typeof ${key.map((field) => expressions(family)[field]).join(' . ')} : ${family} daddr${endpoint};`
      : `type ${key.map((field) => types(family)[field]).join(' . ')}${data === 'chain' ? ' : verdict' : ''};`
  const flags = interval ? ' flags interval;' : dynamic ? ` flags dynamic,timeout; size ${affinityEntries};` : ''
  return `  ${data ? 'map' : 'set'} ${name} { ${type}${flags}${counter ? ' counter;' : ''} }`
}
