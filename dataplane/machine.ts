import { networkInterfaces } from 'node:os'
import { CidrSet, type Family, familyOf, parseIp } from '@kpng/api'
import type { NodeFacts } from './node.js'

/** An address of one of this machine's interfaces. */
export interface InterfaceAddress {
  /** Canonical text. */
  readonly ip: string
  /** The interface is the loopback interface, whatever the address. */
  readonly isLoopback: boolean
}

/** Asks the system. Addresses that need a zone, such as fe80::1%eth0, are left out. */
export const interfaceAddresses = (): InterfaceAddress[] =>
  Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.flatMap(({ address, internal, scopeid }) => {
      const ip = scopeid ? undefined : parseIp(address)
      return ip ? [{ ip: ip.text, isLoopback: internal }] : []
    }),
  )

/** What a `Machine` has of them. What somebody put on the loopback interface may be the address of a Service. */
export const machineAddresses = (addresses: readonly InterfaceAddress[]): string[] =>
  addresses.filter(({ isLoopback }) => !isLoopback).map(({ ip }) => ip)

/** What a socket that listens on all addresses of a family is bound to. */
export const wildcards: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0', IPv6: '::' }

/** Where the sockets of node ports listen: on those of the machine's addresses that serve node ports. */
export function nodePortHosts(
  { nodePortCidrs }: Pick<NodeFacts, 'nodePortCidrs'>,
  family: Family,
  addresses: readonly InterfaceAddress[],
): string[] {
  const cidrs = nodePortCidrs[family]
  if (cidrs.some(({ bits }) => bits === 0)) return [wildcards[family]]
  const served = new CidrSet(cidrs)
  const hosts = addresses.filter(({ ip }) => familyOf(ip) === family && served.has(ip)).map(({ ip }) => ip)
  return [...new Set(hosts)]
}
