import type { Protocol } from '@kpng/client'

export const protocols: readonly Protocol[] = ['tcp', 'udp', 'sctp']

/** As IP headers have them. */
export const protocolNumbers: Readonly<Record<Protocol, number>> = { tcp: 6, udp: 17, sctp: 132 }
