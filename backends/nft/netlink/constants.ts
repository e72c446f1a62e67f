// Numbers of the kernel's netlink interface, under the names that they have in its headers, without the prefixes.

export const AF_NETLINK = 16
export const SOCK_RAW = 3
export const SOCK_CLOEXEC = 0x80000
export const NETLINK_NETFILTER = 12

export const SOL_SOCKET = 1
export const SO_SNDBUFFORCE = 32
export const SO_RCVBUFFORCE = 33
export const SOL_NETLINK = 270
export const NETLINK_ADD_MEMBERSHIP = 1
export const NETLINK_CAP_ACK = 10
export const NETLINK_EXT_ACK = 11
export const MSG_DONTWAIT = 0x40

export const NLMSG_ERROR = 2
export const NLMSG_DONE = 3
export const NLM_F_REQUEST = 0x1
export const NLM_F_ACK = 0x4
export const NLM_F_DUMP_INTR = 0x10
export const NLM_F_DUMP = 0x300
export const NLM_F_CREATE = 0x400
export const NLM_F_CAPPED = 0x100
export const NLM_F_ACK_TLVS = 0x200
export const NLA_F_NESTED = 0x8000
export const NLA_TYPE_MASK = 0x3fff

export const NFNL_MSG_BATCH_BEGIN = 0x10
export const NFNL_MSG_BATCH_END = 0x11
export const NFNL_SUBSYS_CTNETLINK = 1
export const NFNL_SUBSYS_NFTABLES = 10
export const NFNLGRP_NFTABLES = 7

export const NFPROTO_IPV4 = 2
export const NFPROTO_IPV6 = 10

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

export const conntrackMessage = { GET: 1, DELETE: 2 } as const
/** Attributes of a connection. */
export const conntrackAttribute = { ORIGINAL: 1, REPLY: 2, STATUS: 3, ID: 12, ZONE: 18, FILTER: 25 } as const
/** Attributes of one direction of it, and of the parts of that. */
export const tupleAttribute = { IP: 1, PROTOCOL: 2 } as const
export const tupleProtocolAttribute = { NUMBER: 1, SOURCE_PORT: 2, DESTINATION_PORT: 3 } as const

export const errnoNames: ReadonlyMap<number, string> = new Map([
  [1, 'EPERM'],
  [2, 'ENOENT'],
  [4, 'EINTR'],
  [11, 'EAGAIN'],
  [12, 'ENOMEM'],
  [13, 'EACCES'],
  [16, 'EBUSY'],
  [17, 'EEXIST'],
  [22, 'EINVAL'],
  [28, 'ENOSPC'],
  [34, 'ERANGE'],
  [90, 'EMSGSIZE'],
  [93, 'EPROTONOSUPPORT'],
  [95, 'EOPNOTSUPP'],
  [97, 'EAFNOSUPPORT'],
  [105, 'ENOBUFS'],
])

export const errnoText = (errno: number): string => errnoNames.get(errno) ?? `errno ${errno}`
