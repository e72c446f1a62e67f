import { Socket } from 'node:net'
import type { Libc } from '../libc.js'
import { SOCK_CLOEXEC } from './constants.js'

const AF_UNIX = 1
const SOCK_STREAM = 1

/**
 * Reads what comes to a socket of the kernel as soon as it comes. Node can wait for pipes and for sockets of TCP and UNIX, but not for those of
 * netlink. So it gets a UNIX socket, and that descriptor is made one of the netlink socket before Node first waits for it.
 * @param fd must not block: what Node was told about may have been read by somebody else meanwhile
 * @param onBytes gets one datagram
 * @param onError after an error nothing comes any more
 * @returns ends it; undefined if it is not possible here
 */
export function readNotifications(
  libc: Libc,
  fd: number,
  onBytes: (bytes: Buffer) => void,
  onError: () => void,
): (() => void) | undefined {
  const placeholder = libc.socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
  if (placeholder < 0) return undefined
  let stream: Socket
  try {
    stream = new Socket({ fd: placeholder, readable: true, writable: false })
  } catch {
    libc.close(placeholder)
    return undefined
  }
  stream.on('error', onError)
  if (libc.dup3(fd, placeholder, SOCK_CLOEXEC) < 0) {
    stream.removeListener('error', onError).on('error', () => {})
    stream.destroy()
    return undefined
  }
  stream.on('data', onBytes)
  // Waiting for others does not keep the process alive.
  stream.unref()
  return () => {
    stream.removeListener('error', onError).on('error', () => {})
    stream.destroy()
  }
}
