import type { Family } from '@kpng/api'

/** The family of a table, as nftables spells it. */
export type TableFamily = 'ip' | 'ip6'

export const tableFamilies: readonly TableFamily[] = ['ip', 'ip6']

export const tableFamily: Readonly<Record<Family, TableFamily>> = { IPv4: 'ip', IPv6: 'ip6' }

export const familyOfTable: Readonly<Record<TableFamily, Family>> = { ip: 'IPv4', ip6: 'IPv6' }

export const addressBytesIn: Readonly<Record<TableFamily, number>> = { ip: 4, ip6: 16 }
