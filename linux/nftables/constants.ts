// Numbers of the kernel's nf_tables interface, under the names that they have in its headers, without the prefixes.

export const NFNL_SUBSYS_NFTABLES = 10
export const NFNLGRP_NFTABLES = 7

export const nftMessage = {
  NEWTABLE: 0,
  GETTABLE: 1,
  DELTABLE: 2,
  NEWCHAIN: 3,
  GETCHAIN: 4,
  DELCHAIN: 5,
  NEWRULE: 6,
  GETRULE: 7,
  NEWSET: 9,
  GETSET: 10,
  NEWSETELEM: 12,
  GETSETELEM: 13,
  DELSETELEM: 14,
  NEWGEN: 15,
  GETGEN: 16,
} as const
