import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { type Family, KpngError, messageOf, parseIp } from '@kpng/api'

/** An address of one of this machine's interfaces. */
export interface InterfaceAddress {
  readonly interfaceName: string
  readonly family: Family
  /** Canonical, without a scope id (`%eth0`). */
  readonly ip: string
  /** On a loopback interface. It may have other addresses than 127.0.0.1 and ::1. */
  readonly isInternal: boolean
  /** 169.254.0.0/16 and fe80::/10: valid on one link only. */
  readonly isLinkLocal: boolean
}

/**
 * Every address of this machine's interfaces that are up. Each call reads them again, because interfaces come and go.
 * @param read for tests
 */
export function interfaceAddresses(read = networkInterfaces): InterfaceAddress[] {
  const interfaces = readOrThrow(read)
  return Object.entries(interfaces).flatMap(([interfaceName, addresses = []]) =>
    addresses.flatMap(({ address, internal }) => {
      const parsed = parseIp(address.replace(/%.*$/, ''))
      if (!parsed) return []
      const { family, text: ip } = parsed
      return [{ interfaceName, family, ip, isInternal: internal, isLinkLocal: isLinkLocal(ip) }]
    }),
  )
}

/** The addresses at which other machines can reach this one: not those of the loopback interface, nor IPv6 link-local ones. */
export const reachableAddresses = (read = networkInterfaces): string[] =>
  interfaceAddresses(read)
    // An IPv6 link-local address is of no use without its interface. IPv4 has no scope ids, and some clouds use 169.254.0.0/16.
    .filter(({ isInternal, isLinkLocal, family }) => !isInternal && !(isLinkLocal && family === 'IPv6'))
    .map(({ ip }) => ip)

/** Whether a canonical address is valid on one link only. */
export const isLinkLocal = (ip: string): boolean => /^(?:169\.254\.|fe[89ab][0-9a-f]:)/.test(ip)

function readOrThrow(read: typeof networkInterfaces): ReturnType<typeof networkInterfaces> {
  try {
    return read()
  } catch (error) {
    // Reading them needs a socket, so this fails if the process has no file descriptors left.
    throw new KpngError('unavailable', `The addresses of this machine cannot be read: ${messageOf(error)}.`, {
      cause: error,
    })
  }
}

/** Whether this network namespace has IPv6. */
export function hasIpv6(): boolean {
  try {
    readFileSync('/proc/net/if_inet6')
    return readFileSync('/proc/sys/net/ipv6/conf/all/disable_ipv6', 'utf8').trim() === '0'
  } catch {
    return false
  }
}
