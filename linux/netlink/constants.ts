import { constants } from 'node:os'
import { getSystemErrorName } from 'node:util'

// Numbers of the kernel's netlink interface that all its protocols share, under the names that they have in its headers.

export const AF_NETLINK = 16
export const SOCK_RAW = 3
export const SOCK_CLOEXEC = 0x80000
export const SOCK_NONBLOCK = 0x800

export const NETLINK_ROUTE = 0
export const NETLINK_NETFILTER = 12
export const NETLINK_GENERIC = 16

/** How messages name a protocol. */
export const protocolNames: ReadonlyMap<number, string> = new Map([
  [NETLINK_ROUTE, 'rtnetlink'],
  [NETLINK_NETFILTER, 'netfilter'],
  [NETLINK_GENERIC, 'generic netlink'],
])

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
export const NLM_F_APPEND = 0x800
export const NLM_F_CAPPED = 0x100
export const NLM_F_ACK_TLVS = 0x200
export const NLA_F_NESTED = 0x8000
export const NLA_TYPE_MASK = 0x3fff

export const NFNL_MSG_BATCH_BEGIN = 0x10
export const NFNL_MSG_BATCH_END = 0x11

export const NFPROTO_IPV4 = 2
export const NFPROTO_IPV6 = 10

/** Error numbers by name. They are not the same on all architectures. */
export const { EPERM, ENOENT, EINTR, EAGAIN, EBUSY, EEXIST, EINVAL, EOPNOTSUPP, ENOBUFS, EPROTONOSUPPORT } =
  constants.errno

/** The name of an error number. */
export const errnoText = (errno: number): string =>
  Number.isInteger(errno) && errno > 0 ? getSystemErrorName(-errno) : `errno ${errno}`
