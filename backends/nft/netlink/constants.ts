// Numbers of the kernel's nf_tables interface, under the names that they have in its headers, without the prefixes.

export const NFNL_SUBSYS_NFTABLES = 10
export const NFNLGRP_NFTABLES = 7

export const nftMessage = {
  GETTABLE: 1,
  NEWCHAIN: 3,
  GETCHAIN: 4,
  DELCHAIN: 5,
  NEWRULE: 6,
  GETRULE: 7,
  GETSET: 10,
  NEWSETELEM: 12,
  GETSETELEM: 13,
  DELSETELEM: 14,
  NEWGEN: 15,
  GETGEN: 16,
} as const

export const NFNL_SUBSYS_CTNETLINK = 1
export const conntrackMessage = { GET: 1, DELETE: 2 } as const
/** Attributes of a connection. */
export const conntrackAttribute = { ORIGINAL: 1, REPLY: 2, STATUS: 3, ID: 12, ZONE: 18, FILTER: 25 } as const
/** Attributes of one direction of it, and of the parts of that. */
export const tupleAttribute = { IP: 1, PROTOCOL: 2 } as const
export const tupleProtocolAttribute = { NUMBER: 1, SOURCE_PORT: 2, DESTINATION_PORT: 3 } as const
