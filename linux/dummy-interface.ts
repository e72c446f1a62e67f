import { addressBits, bytesOfIp, type Family, familyOf, ipOfBytes, KpngError } from '@kpng/api'
import { rightsAdvice } from './capabilities.js'
import { loadLibc } from './libc.js'
import { MessageBuffer } from './netlink/buffer.js'
import {
  EEXIST,
  EOPNOTSUPP,
  EPERM,
  errnoText,
  NETLINK_ROUTE,
  NLM_F_ACK,
  NLM_F_CREATE,
  NLM_F_DUMP,
} from './netlink/constants.js'
import { dump } from './netlink/dump.js'
import {
  acknowledgementIn,
  attributesIn,
  attributesOf,
  findAttribute,
  hostOrder,
  type Message,
  textOf,
} from './netlink/messages.js'
import { NetlinkSocket } from './netlink/socket.js'

// An interface of kind dummy that stays down. The kernel takes packets to its addresses for its own, and no packet ever passes it.

const RTM_NEWLINK = 16
const RTM_DELLINK = 17
const RTM_GETLINK = 18
const RTM_NEWADDR = 20
const RTM_DELADDR = 21
const RTM_GETADDR = 22
const NLM_F_EXCL = 0x200
const IFLA_IFNAME = 3
const IFLA_LINKINFO = 18
const IFLA_INFO_KIND = 1
const IFA_ADDRESS = 1
const IFA_LOCAL = 2
const IFA_FLAGS = 8
/** Without it, an IPv6 address is not used until the kernel has looked for duplicates, which it never does while the interface is down. */
const IFA_F_NODAD = 2

/** Bytes of the netlink header and of the fixed headers of links and addresses. */
const linkHeaderLength = 32
const addressHeaderLength = 24

const addressFamily: Readonly<Record<Family, number>> = { IPv4: 2, IPv6: 10 }

/** Addresses are sent in parts, because the kernel works on what is sent at once before it returns. */
const addressesAtOnce = 500

export class DummyInterface {
  readonly name: string
  readonly #socket: NetlinkSocket
  #index = 0

  private constructor(name: string, socket: NetlinkSocket) {
    this.name = name
    this.#socket = socket
  }

  /** The interface with this name, which is made if it is missing. Rejects if the name belongs to an interface of another kind. */
  static async open(name: string): Promise<DummyInterface> {
    const opened = new DummyInterface(name, new NetlinkSocket(await loadLibc(), NETLINK_ROUTE))
    try {
      await opened.ensure()
      return opened
    } catch (error) {
      opened.close()
      throw error
    }
  }

  /** Makes the interface again if somebody removed it. Resolves with whether it had to be made. */
  async ensure(): Promise<boolean> {
    const found = await findLink(this.#socket, this.name)
    if (found && found.kind !== 'dummy') {
      throw new KpngError(
        'unavailable',
        `The interface ${this.name} is not of kind dummy, but ${found.kind || 'a device'}. Remove or rename it.`,
      )
    }
    if (!found) await this.#create()
    this.#index = found?.index ?? (await findLink(this.#socket, this.name))?.index ?? 0
    return !found
  }

  /** The addresses that it has. */
  async addresses(): Promise<Set<string>> {
    const request = new MessageBuffer(1)
    request.begin(RTM_GETADDR, NLM_F_DUMP)
    request.header(new Uint8Array(8))
    request.end()
    const found = new Set<string>()
    await dump(this.#socket, request.bytes, (message) => {
      if (message.type !== RTM_NEWADDR || hostOrder.readU32(message.bytes, 20) !== this.#index) return
      const attributes = [...attributesOf(message, addressHeaderLength)]
      const bytes = findAttribute(attributes, IFA_LOCAL) ?? findAttribute(attributes, IFA_ADDRESS)
      if (bytes) found.add(ipOfBytes(bytes))
    })
    return found
  }

  /** Adds and removes addresses. One that is there already, or is gone already, is no failure. */
  async change(add: readonly string[], remove: readonly string[]): Promise<void> {
    const all = [...add.map((ip) => [RTM_NEWADDR, ip] as const), ...remove.map((ip) => [RTM_DELADDR, ip] as const)]
    for (let start = 0; start < all.length; start += addressesAtOnce) {
      const part = all.slice(start, start + addressesAtOnce)
      const messages = new MessageBuffer(1)
      for (const [type, ip] of part) this.#writeAddress(messages, type, ip)
      messages.addFlags(NLM_F_ACK)
      await this.#socket.send(messages.bytes)
      for (const message of this.#socket.receive()) {
        const { sequence, errno } = acknowledgementIn(message) ?? { sequence: 0, errno: 0 }
        const [type, ip] = part[sequence - 1] ?? []
        if (errno === 0 || ip === undefined || (type === RTM_NEWADDR && errno === EEXIST)) continue
        if (type === RTM_DELADDR) continue
        throw failure(`add the address ${ip} to the interface ${this.name}`, errno)
      }
    }
  }

  close(): void {
    this.#socket.close()
  }

  async #create(): Promise<void> {
    const request = new MessageBuffer(1)
    request.begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK)
    request.header(new Uint8Array(16))
    request.text(IFLA_IFNAME, this.name)
    request.nested(IFLA_LINKINFO, () => request.text(IFLA_INFO_KIND, 'dummy'))
    request.end()
    const errno = await errnoOf(this.#socket, request)
    if (errno === EOPNOTSUPP) {
      throw new KpngError(
        'unsupported',
        `The kernel has no interfaces of kind dummy, so ${this.name} cannot be made. Load the module dummy (modprobe dummy).`,
      )
    }
    if (errno !== 0 && errno !== EEXIST) throw failure(`make the interface ${this.name}`, errno)
  }

  #writeAddress(messages: MessageBuffer, type: number, ip: string): void {
    const family = familyOf(ip)
    const header = Buffer.alloc(8)
    header[0] = addressFamily[family]
    header[1] = addressBits[family]
    hostOrder.writeU32(header, this.#index, 4)
    const bytes = String.fromCharCode(...(bytesOfIp(ip) ?? []))
    messages.begin(type, type === RTM_NEWADDR ? NLM_F_CREATE | NLM_F_EXCL : 0)
    messages.header(header)
    messages.raw(IFA_LOCAL, bytes)
    messages.raw(IFA_ADDRESS, bytes)
    if (family === 'IPv6') messages.hostU32(IFA_FLAGS, IFA_F_NODAD)
    messages.end()
  }
}

/** Removes an interface of kind dummy with its addresses. Resolves with false if there is none. */
export async function removeDummyInterface(name: string): Promise<boolean> {
  const socket = new NetlinkSocket(await loadLibc(), NETLINK_ROUTE)
  try {
    const found = await findLink(socket, name)
    if (found?.kind !== 'dummy') return false
    const request = new MessageBuffer(1)
    request.begin(RTM_DELLINK, NLM_F_ACK)
    const header = Buffer.alloc(16)
    hostOrder.writeU32(header, found.index, 4)
    request.header(header)
    request.end()
    const errno = await errnoOf(socket, request)
    if (errno !== 0) throw failure(`remove the interface ${name}`, errno)
    return true
  } finally {
    socket.close()
  }
}

async function findLink(socket: NetlinkSocket, name: string): Promise<{ index: number; kind: string } | undefined> {
  const request = new MessageBuffer(1)
  request.begin(RTM_GETLINK, 0)
  request.header(new Uint8Array(16))
  request.text(IFLA_IFNAME, name)
  request.end()
  await socket.send(request.bytes)
  for (const message of socket.receive()) if (message.type === RTM_NEWLINK) return linkIn(message)
  return undefined
}

function linkIn(message: Message): { index: number; kind: string } {
  const info = findAttribute(attributesOf(message, linkHeaderLength), IFLA_LINKINFO)
  const kind = info && findAttribute(attributesIn(info), IFLA_INFO_KIND)
  return { index: hostOrder.readU32(message.bytes, 20), kind: kind ? textOf(kind) : '' }
}

async function errnoOf(socket: NetlinkSocket, request: MessageBuffer): Promise<number> {
  await socket.send(request.bytes)
  for (const message of socket.receive()) {
    const errno = acknowledgementIn(message)?.errno
    if (errno !== undefined) return errno
  }
  throw new KpngError('unavailable', 'The kernel did not answer a request about an interface.')
}

function failure(what: string, errno: number): KpngError {
  const advice = errno === EPERM ? ` ${rightsAdvice('CAP_NET_ADMIN')}` : ''
  return new KpngError('unavailable', `Cannot ${what}: ${errnoText(errno)}.${advice}`)
}
