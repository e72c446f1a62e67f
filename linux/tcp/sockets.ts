import { bytesOfIp, type Family, familyOf, hostPort, ipOfBytes } from '@kpng/api'
import { errnoText } from '../netlink/constants.js'
import { SOCK_CLOEXEC, SOCK_NONBLOCK, type TcpSyscalls } from './syscalls.js'

// TCP sockets as file descriptors. Numbers are those of the kernel's headers.

const AF_INET = 2
const AF_INET6 = 10
const SOCK_STREAM = 1
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const SO_ERROR = 4
const SO_KEEPALIVE = 9
const SO_LINGER = 13
const SO_REUSEPORT = 15
const SO_ATTACH_REUSEPORT_CBPF = 51
const SO_DETACH_REUSEPORT_BPF = 68
const IPPROTO_TCP = 6
const TCP_NODELAY = 1
const TCP_KEEPIDLE = 4
const TCP_KEEPINTVL = 5
const TCP_KEEPCNT = 6
const TCP_NOTSENT_LOWAT = 25
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26
const EINPROGRESS = 115
const type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC

export interface SocketAddress {
  /** Canonical text. */
  readonly ip: string
  readonly port: number
}

const int = (value: number): Uint8Array => new Uint8Array(Int32Array.of(value).buffer)
const yes = int(1)
/** A connection that is closed with it is reset. */
const noLinger = new Uint8Array(Int32Array.of(1, 0).buffer)

/** The same as in Node: a peer that vanished is found out after 15 s and 10 questions, one per second. */
const keepAlive: readonly (readonly [option: number, value: Uint8Array])[] = [
  [TCP_KEEPIDLE, int(15)],
  [TCP_KEEPINTVL, int(1)],
  [TCP_KEEPCNT, int(10)],
]

/**
 * A socket takes no more while this many bytes wait to be sent; bytes that were sent and not yet acknowledged do not count. Otherwise
 * the kernel takes megabytes of each stream. They are sent late, in the reader's time, and are no longer in the processor's cache then.
 * With a much smaller limit, a single fast stream waits too often.
 */
export const mostUnsentBytes = 524_288
const unsentLimit = int(mostUnsentBytes)

/** The result of a call that failed, as Node has it. */
export function systemError(
  calls: Pick<TcpSyscalls, 'errno'>,
  call: string,
  at?: SocketAddress,
  errno = calls.errno(),
): NodeJS.ErrnoException {
  const code = errnoText(errno)
  const where = at ? { address: at.ip, port: at.port } : {}
  const message = `${call} ${code}${at ? ` ${hostPort(at.ip, at.port)}` : ''}`
  return Object.assign(new Error(message), { code, errno, syscall: call, ...where })
}

/** A `struct sockaddr_in` or `sockaddr_in6`. */
export function encodeAddress({ ip, port }: SocketAddress): Uint8Array {
  const bytes = bytesOfIp(ip)
  if (!bytes) throw new TypeError(`${ip} is not an IP address.`)
  const isV4 = bytes.length === 4
  const address = new Uint8Array(isV4 ? 16 : 28)
  address.set([isV4 ? AF_INET : AF_INET6, 0, port >> 8, port & 0xff])
  address.set(bytes, isV4 ? 4 : 8)
  return address
}

export function decodeAddress(address: Uint8Array): SocketAddress {
  const port = ((address[2] as number) << 8) | (address[3] as number)
  if (address[0] !== AF_INET) return { ip: ipOfBytes(address.subarray(8, 24)), port }
  return { ip: `${address[4]}.${address[5]}.${address[6]}.${address[7]}`, port }
}

/**
 * Opens sockets that listen at one address; the kernel divides connections between them. Of another program, and of another process of this
 * one, the address is not shared: `EADDRINUSE`. Accepted sockets have the same
 * options.
 */
export function listenTcp(
  calls: TcpSyscalls,
  at: SocketAddress,
  { sockets, backlog }: { readonly sockets: number; readonly backlog: number },
): { readonly fds: readonly number[]; readonly address: SocketAddress } {
  const family = familyOf(at.ip)
  const fds: number[] = []
  let address = at
  try {
    for (let index = 0; index < sockets; index++) {
      const fd = openSocket(calls, family, at)
      fds.push(fd)
      calls.setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, yes, 4)
      if (family === 'IPv6') calls.setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, yes, 4)
      // The first is bound without SO_REUSEPORT, so it must be the only one. The others join it.
      if (index > 0) calls.setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, yes, 4)
      const bytes = encodeAddress(address)
      if (calls.bind(fd, bytes, bytes.length) !== 0) throw systemError(calls, 'bind', address)
      if (index === 0) address = localAddress(calls, fd)
      if (sockets > 1) calls.setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, yes, 4)
    }
    for (const fd of fds) if (calls.listen(fd, backlog) !== 0) throw systemError(calls, 'listen', address)
    return { fds, address }
  } catch (error) {
    for (const fd of fds) calls.close(fd)
    throw error
  }
}

/** Where in the IP header the last 32 bits of the client's address are. */
const sourceOffset: Readonly<Record<Family, number>> = { IPv4: 12, IPv6: 20 }
/** A negative offset of classic BPF: from the network header. */
const SKF_NET_OFF = 0xfff0_0000
const BPF_LD_W_ABS = 0x20
const BPF_ALU_MOD_K = 0x94
const BPF_RET_A = 0x16

/**
 * Whether all connections of a client go to the same of several sockets that listen at one address.
 * @param sockets how many there are. `fd` is any of them
 */
export function keepClientsTogether(
  calls: TcpSyscalls,
  fd: number,
  family: Family,
  sockets: number,
  together: boolean,
): void {
  if (sockets < 2) return
  if (!together) {
    // It fails if there is none.
    calls.setsockopt(fd, SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, yes, 4)
    return
  }
  const instructions = [
    [BPF_LD_W_ABS, (SKF_NET_OFF + sourceOffset[family]) >>> 0],
    [BPF_ALU_MOD_K, sockets],
    [BPF_RET_A, 0],
  ] as const
  const code = Buffer.alloc(8 * instructions.length)
  for (const [index, [operation, value]] of instructions.entries()) {
    code.writeUInt16LE(operation, 8 * index)
    code.writeUInt32LE(value, 8 * index + 4)
  }
  // struct sock_fprog
  const program = Buffer.alloc(16)
  program.writeUInt16LE(instructions.length, 0)
  program.writeBigUInt64LE(calls.addressOf(code), 8)
  const result = calls.setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program, program.length)
  if (result !== 0 || code.length === 0) throw systemError(calls, 'setsockopt(SO_ATTACH_REUSEPORT_CBPF)')
}

/** Begins to connect. The result is known when the socket is writable: `errorOf`. */
export function connectTcp(calls: TcpSyscalls, to: SocketAddress): number {
  const fd = openSocket(calls, familyOf(to.ip), to)
  const bytes = encodeAddress(to)
  if (calls.connect(fd, bytes, bytes.length) === 0 || calls.errno() === EINPROGRESS) return fd
  const error = systemError(calls, 'connect', to)
  calls.close(fd)
  throw error
}

const value = new Uint8Array(4)
const length = new Uint8Array(4)

/** The error that a socket has had since it was last asked. 0: none. */
export function errorOf(calls: TcpSyscalls, fd: number): number {
  length[0] = 4
  if (calls.getsockopt(fd, SOL_SOCKET, SO_ERROR, value, length) !== 0) return calls.errno()
  return (value[0] as number) | ((value[1] as number) << 8)
}

/** Closes a connection with a reset instead of an end. */
export function resetAndClose(calls: TcpSyscalls, fd: number): void {
  calls.setsockopt(fd, SOL_SOCKET, SO_LINGER, noLinger, 8)
  calls.close(fd)
}

export const localAddress = (calls: TcpSyscalls, fd: number): SocketAddress => addressBy(calls, 'getsockname', fd)

export const remoteAddress = (calls: TcpSyscalls, fd: number): SocketAddress => addressBy(calls, 'getpeername', fd)

function addressBy(calls: TcpSyscalls, call: 'getsockname' | 'getpeername', fd: number): SocketAddress {
  const bytes = new Uint8Array(28)
  if (calls[call](fd, bytes, int(28)) !== 0) throw systemError(calls, call)
  return decodeAddress(bytes)
}

function openSocket(calls: TcpSyscalls, family: Family, at: SocketAddress): number {
  const fd = calls.socket(family === 'IPv4' ? AF_INET : AF_INET6, type, 0)
  if (fd < 0) throw systemError(calls, 'socket', at)
  calls.setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, yes, 4)
  calls.setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, unsentLimit, 4)
  calls.setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, yes, 4)
  for (const [option, setting] of keepAlive) calls.setsockopt(fd, IPPROTO_TCP, option, setting, 4)
  return fd
}
