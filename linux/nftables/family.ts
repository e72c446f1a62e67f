import type { Family } from '@kpng/api'
import { NFPROTO_IPV4, NFPROTO_IPV6 } from '../netlink/constants.js'

/** The family of a table, as nftables spells it. */
export type TableFamily = 'ip' | 'ip6'

export const tableFamilies: readonly TableFamily[] = ['ip', 'ip6']

export const tableFamily: Readonly<Record<Family, TableFamily>> = { IPv4: 'ip', IPv6: 'ip6' }

export const familyOfTable: Readonly<Record<TableFamily, Family>> = { ip: 'IPv4', ip6: 'IPv6' }

export const addressBytesIn: Readonly<Record<TableFamily, number>> = { ip: 4, ip6: 16 }

/** As netlink messages have it. */
export const familyNumber: Readonly<Record<TableFamily, number>> = { ip: NFPROTO_IPV4, ip6: NFPROTO_IPV6 }

export const protocols = ['tcp', 'udp', 'sctp'] as const

export type Protocol = (typeof protocols)[number]

/** As IP headers have them. */
export const protocolNumbers: Readonly<Record<Protocol, number>> = { tcp: 6, udp: 17, sctp: 132 }
