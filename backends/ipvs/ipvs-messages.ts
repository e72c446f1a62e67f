import { bytesOfIp, type Family, ipOfBytes } from '@kpng/api'
import type { Protocol } from '@kpng/client'
import {
  type Attribute,
  attributesIn,
  findAttribute,
  type GenericRequest,
  hostOrder,
  type MessageBuffer,
  textOf,
} from '@kpng/linux'
import { type Destination, type ServerAddress, serverKey, type VirtualServer } from './virtual-servers.js'

// Messages of the generic netlink family IPVS, version 1 (linux/ip_vs.h).

export const command = {
  newService: 1,
  setService: 2,
  deleteService: 3,
  getService: 4,
  newDest: 5,
  setDest: 6,
  deleteDest: 7,
  getDest: 8,
  setConfig: 12,
} as const

export const SERVICE = 1
const DEST = 2
export const TIMEOUTS = { tcp: 4, tcpFin: 5, udp: 6 } as const
const service = {
  family: 1,
  protocol: 2,
  address: 3,
  port: 4,
  mark: 5,
  scheduler: 6,
  flags: 7,
  timeout: 8,
  netmask: 9,
  stats64: 12,
} as const
const dest = {
  address: 1,
  port: 2,
  method: 3,
  weight: 4,
  upper: 5,
  lower: 6,
  active: 7,
  inactive: 8,
  family: 11,
} as const
const STATS_CONNECTIONS = 1

const FLAG_PERSISTENT = 1
const METHOD_MASQUERADE = 0

const familyNumber: Readonly<Record<Family, number>> = { IPv4: 2, IPv6: 10 }
const protocolNumber: Readonly<Record<Protocol, number>> = { tcp: 6, udp: 17, sctp: 132 }

/** What a virtual server is made of, beside its destinations. */
type ServerSettings = ServerAddress & Pick<VirtualServer, 'scheduler' | 'persistenceSeconds'>

/** A change, in the words of the kernel. */
export type Operation =
  | { readonly do: 'newService' | 'setService'; readonly server: ServerSettings }
  | { readonly do: 'deleteService'; readonly server: ServerAddress }
  | {
      readonly do: 'newDest' | 'setDest'
      readonly server: ServerAddress
      readonly destination: Destination
      readonly weight: number
    }
  | { readonly do: 'deleteDest'; readonly server: ServerAddress; readonly destination: Destination }

export interface FailedOperation {
  readonly operation: Operation
  readonly errno: number
}

/** A virtual server as it is in the kernel. */
export interface KernelServer extends ServerAddress {
  readonly key: string
  readonly scheduler: string
  readonly persistenceSeconds: number
  /** Connections since it was made. */
  readonly connections: number
}

export interface KernelDestination extends Destination {
  readonly weight: number
  /** Connections that are open, and those that were closed a while ago. */
  readonly active: number
  readonly inactive: number
}

/** An operation as a netlink request. */
export function requestOf(operation: Operation): GenericRequest {
  const { server } = operation
  return {
    command: command[operation.do],
    write: (message) => {
      message.nested(SERVICE, () => {
        writeServerKey(message, server)
        if (operation.do === 'newService' || operation.do === 'setService') writeServer(message, operation.server)
      })
      if (!('destination' in operation)) return
      message.nested(DEST, () => {
        writeDestinationKey(message, operation.destination, server.family)
        if ('weight' in operation) writeDestination(message, operation.weight)
      })
    },
  }
}

export function writeServerKey(message: MessageBuffer, { family, protocol, address, port, mark }: ServerAddress): void {
  message.hostU16(service.family, familyNumber[family])
  if (mark !== 0) {
    message.hostU32(service.mark, mark)
    return
  }
  message.hostU16(service.protocol, protocolNumber[protocol])
  message.raw(service.address, addressBytes(address))
  message.raw(service.port, portBytes(port))
}

function writeServer(message: MessageBuffer, { family, scheduler, persistenceSeconds }: ServerSettings): void {
  message.text(service.scheduler, scheduler)
  const flags = Buffer.alloc(8)
  hostOrder.writeU32(flags, persistenceSeconds > 0 ? FLAG_PERSISTENT : 0, 0)
  // Which flags are meant.
  hostOrder.writeU32(flags, 0xffffffff, 4)
  message.raw(service.flags, flags.toString('latin1'))
  message.hostU32(service.timeout, persistenceSeconds)
  // Each client address counts for itself: an IPv4 mask, or the length of an IPv6 prefix.
  message.hostU32(service.netmask, family === 'IPv4' ? 0xffffffff : 128)
}

function writeDestinationKey(message: MessageBuffer, { ip, port }: Destination, family: Family): void {
  message.raw(dest.address, addressBytes(ip))
  message.raw(dest.port, portBytes(port))
  message.hostU16(dest.family, familyNumber[family])
}

function writeDestination(message: MessageBuffer, weight: number): void {
  message.hostU32(dest.method, METHOD_MASQUERADE)
  message.hostU32(dest.weight, weight)
  // No limits of connections.
  message.hostU32(dest.upper, 0)
  message.hostU32(dest.lower, 0)
}

/** Always 16 bytes; an IPv4 address has the first four. */
const addressBytes = (ip: string): string => String.fromCharCode(...(bytesOfIp(ip) ?? [])).padEnd(16, '\0')

const portBytes = (port: number): string => String.fromCharCode(port >> 8, port & 0xff)

/** Undefined if it is one that kpng never makes: another protocol, or no address. */
export function serverIn(answer: readonly Attribute[]): KernelServer | undefined {
  const nested = findAttribute(answer, SERVICE)
  if (!nested) return undefined
  const attributes = [...attributesIn(nested)]
  const family = familyIn(attributes, service.family)
  const mark = findAttribute(attributes, service.mark) ? numberIn(attributes, service.mark) : 0
  const protocol = (Object.keys(protocolNumber) as Protocol[]).find(
    (name) => protocolNumber[name] === shortIn(attributes, service.protocol),
  )
  const bytes = findAttribute(attributes, service.address)
  if (!family || (mark === 0 && (!protocol || !bytes))) return undefined
  const where: ServerAddress = {
    ...{ family, mark, protocol: protocol ?? 'tcp' },
    address: mark === 0 && bytes ? ipOfBytes(bytes.subarray(0, family === 'IPv4' ? 4 : 16)) : '',
    port: mark === 0 ? (findAttribute(attributes, service.port)?.readUInt16BE(0) ?? 0) : 0,
  }
  const flags = findAttribute(attributes, service.flags)
  const isPersistent = flags !== undefined && (hostOrder.readU32(flags, 0) & FLAG_PERSISTENT) !== 0
  const stats = findAttribute(attributes, service.stats64)
  const connections = stats && findAttribute(attributesIn(stats), STATS_CONNECTIONS)
  return {
    ...where,
    key: serverKey(where),
    scheduler: textOf(findAttribute(attributes, service.scheduler) ?? Buffer.alloc(0)),
    persistenceSeconds: isPersistent ? numberIn(attributes, service.timeout) : 0,
    connections: connections ? longOf(connections) : 0,
  }
}

export function destinationIn(answer: readonly Attribute[], serverFamily: Family): KernelDestination | undefined {
  const nested = findAttribute(answer, DEST)
  if (!nested) return undefined
  const attributes = [...attributesIn(nested)]
  const bytes = findAttribute(attributes, dest.address)
  const family = familyIn(attributes, dest.family) ?? serverFamily
  if (!bytes) return undefined
  return {
    ip: ipOfBytes(bytes.subarray(0, family === 'IPv4' ? 4 : 16)),
    port: findAttribute(attributes, dest.port)?.readUInt16BE(0) ?? 0,
    weight: numberIn(attributes, dest.weight),
    active: numberIn(attributes, dest.active),
    inactive: numberIn(attributes, dest.inactive),
  }
}

function numberIn(attributes: Iterable<Attribute>, type: number): number {
  const value = findAttribute(attributes, type)
  return value ? hostOrder.readU32(value, 0) : 0
}

function shortIn(attributes: Iterable<Attribute>, type: number): number {
  const value = findAttribute(attributes, type)
  return value ? hostOrder.readU16(value, 0) : 0
}

const familyIn = (attributes: Iterable<Attribute>, type: number): Family | undefined =>
  (Object.keys(familyNumber) as Family[]).find((name) => familyNumber[name] === shortIn(attributes, type))

/** An unsigned number of 64 bits. Counters stay below 2^53. */
function longOf(bytes: Buffer): number {
  const [first, second] = [hostOrder.readU32(bytes, 0), hostOrder.readU32(bytes, 4)]
  const isLittle = hostOrder.readU16(Buffer.from([1, 0]), 0) === 1
  return isLittle ? second * 2 ** 32 + first : first * 2 ** 32 + second
}
