import { Socket } from 'node:net'
import { getSystemErrorName } from 'node:util'
import { bytesOfIp, messageOf } from '@kpng/api'
import { type Libc, loadLibc } from '../../libc.js'

// Node has no SCTP sockets. The kernel's are of type SOCK_STREAM, as those of TCP are: libc opens and connects them, and Node's `net`
// takes the descriptor and reads and writes it like one of TCP.

const AF_INET = 2
const AF_INET6 = 10
const SOCK_STREAM = 1
const SOCK_NONBLOCK = 0x800
const SOCK_CLOEXEC = 0x80000
const IPPROTO_SCTP = 132
const POLLOUT = 4
const EINPROGRESS = 115

type Option = readonly [level: number, name: number]
const SO_REUSEADDR: Option = [1, 2]
const SO_ERROR: Option = [1, 4]
const IP_RECVERR: Option = [0, 11]
const IP_FREEBIND: Option = [0, 15]
const IPV6_RECVERR: Option = [41, 25]
const IPV6_V6ONLY: Option = [41, 26]
const SCTP_RTOINFO: Option = [IPPROTO_SCTP, 0]

/**
 * The first packet is sent again after so long, by default after 3 s. An ICMP error that comes back while the socket is still busy
 * connecting is lost in the kernel, as it does between namespaces; the next packet brings another.
 */
const sendAgainMs = 250
/** How often to look whether a connection is there. */
const lookEveryMs = 5

/** Why there are no SCTP sockets here; undefined if there are. Loads the kernel's module if it is there. */
export async function whyNoSctp(): Promise<string | undefined> {
  let libc: Libc
  try {
    libc = await loadLibc()
  } catch (error) {
    return messageOf(error)
  }
  const fd = libc.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP)
  if (fd < 0) return `this kernel has no SCTP (${nameOf(libc.errno())})`
  libc.close(fd)
  return undefined
}

/** The descriptor of a socket at an address, for a server of `net` to listen on. */
export async function bindSctp(ip: string, port: number): Promise<number> {
  const libc = await loadLibc()
  const fd = open(libc, ip)
  setInts(libc, fd, SO_REUSEADDR, [1])
  // A host may have a route that makes whole ranges its own. IPv6 lets SCTP bind to such an address only if it is asked to.
  setInts(libc, fd, IP_FREEBIND, [1])
  const address = socketAddress(ip, port)
  if (libc.bind(fd, address, address.length) === 0) return fd
  const code = nameOf(libc.errno())
  libc.close(fd)
  throw new Error(`bind ${code} ${ip}:${port}/SCTP`)
}

/** Resolves with a connected socket, with the code of the error, or with undefined if nothing came back in time. */
export async function connectSctp(ip: string, port: number, timeoutMs: number): Promise<Socket | string | undefined> {
  const libc = await loadLibc()
  const fd = open(libc, ip)
  // Without it, ICMP errors are ignored until the last packet was sent.
  setInts(libc, fd, ip.includes(':') ? IPV6_RECVERR : IP_RECVERR, [1])
  // struct sctp_rtoinfo: association, initial, max, min.
  setInts(libc, fd, SCTP_RTOINFO, [0, sendAgainMs, 60_000, sendAgainMs])
  const address = socketAddress(ip, port)
  const failed = libc.connect(fd, address, address.length) === 0 ? 0 : libc.errno()
  const errno = failed === EINPROGRESS ? await connected(libc, fd, timeoutMs) : failed
  if (errno === 0) return new Socket({ fd })
  libc.close(fd)
  return errno === undefined ? undefined : nameOf(errno)
}

/** Resolves with the number of the error, 0 if there is a connection, or undefined if there is none in time. */
function connected(libc: Libc, fd: number, timeoutMs: number): Promise<number | undefined> {
  const start = performance.now()
  // struct pollfd: descriptor, what to wait for, what there is.
  const wanted = Buffer.alloc(8)
  wanted.writeInt32LE(fd, 0)
  wanted.writeInt16LE(POLLOUT, 4)
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      // The time is read first: what came before it was over counts, however late this is looked at.
      const isOver = performance.now() - start >= timeoutMs
      const isReady = libc.poll(wanted, 1, 0) === 1
      if (!isReady && !isOver) return
      clearInterval(timer)
      resolve(isReady ? errorOf(libc, fd) : undefined)
    }, lookEveryMs)
  })
}

function errorOf(libc: Libc, fd: number): number {
  const value = Buffer.alloc(4)
  const length = Buffer.from([4, 0, 0, 0])
  return libc.getsockopt(fd, ...SO_ERROR, value, length) === 0 ? value.readInt32LE() : libc.errno()
}

function open(libc: Libc, ip: string): number {
  const isIpv6 = ip.includes(':')
  const fd = libc.socket(isIpv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP)
  if (fd < 0) throw new Error(`this kernel has no SCTP (${nameOf(libc.errno())})`)
  // An SCTP host tells its peer all its addresses, and the peer may use any of them. They are to be of one family.
  if (isIpv6) setInts(libc, fd, IPV6_V6ONLY, [1])
  return fd
}

function setInts(libc: Libc, fd: number, [level, name]: Option, values: readonly number[]): void {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeInt32LE(value, 4 * index)
  libc.setsockopt(fd, level, name, bytes, bytes.length)
}

/** struct sockaddr_in or sockaddr_in6. */
function socketAddress(ip: string, port: number): Buffer {
  const bytes = bytesOfIp(ip) ?? new Uint8Array(4)
  const isIpv6 = bytes.length === 16
  const address = Buffer.alloc(isIpv6 ? 28 : 16)
  address.writeUInt16LE(isIpv6 ? AF_INET6 : AF_INET, 0)
  address.writeUInt16BE(port, 2)
  address.set(bytes, isIpv6 ? 8 : 4)
  return address
}

const nameOf = (errno: number): string => getSystemErrorName(-errno)
