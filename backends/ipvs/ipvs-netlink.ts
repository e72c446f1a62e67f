import { KpngError } from '@kpng/api'
import { errnoText, GenericNetlink, type MessageBuffer } from '@kpng/linux'
import {
  command,
  destinationIn,
  type FailedOperation,
  type KernelDestination,
  type KernelServer,
  type Operation,
  requestOf,
  SERVICE,
  serverIn,
  TIMEOUTS,
  writeServerKey,
} from './ipvs-messages.js'
import { type ServerAddress, serverKey } from './virtual-servers.js'

// The kernel's IPVS. Everything is per network namespace.

/** Seconds. 0: as it is. */
export interface Timeouts {
  readonly tcp: number
  readonly tcpFin: number
  readonly udp: number
}

export class Ipvs {
  readonly #netlink: GenericNetlink

  private constructor(netlink: GenericNetlink) {
    this.#netlink = netlink
  }

  static async open(): Promise<Ipvs> {
    const netlink = await GenericNetlink.open('IPVS', 1)
    if (netlink) return new Ipvs(netlink)
    throw new KpngError(
      'unsupported',
      'The kernel has no IPVS. Load the module ip_vs (modprobe ip_vs), or use another backend, such as to-nft.',
    )
  }

  /** Carries out operations in order. What is refused does not stop the rest. */
  async change(operations: readonly Operation[]): Promise<FailedOperation[]> {
    const refused = await this.#netlink.send(operations.map(requestOf))
    return refused.map(({ index, errno }) => ({ operation: operations[index] as Operation, errno }))
  }

  /** All virtual servers, also those of others. */
  servers(): Promise<KernelServer[]> {
    return this.#netlink.list({ command: command.getService }, 'virtual servers', serverIn)
  }

  destinations(server: ServerAddress): Promise<KernelDestination[]> {
    const write = (message: MessageBuffer) => message.nested(SERVICE, () => writeServerKey(message, server))
    return this.#netlink.list(
      { command: command.getDest, write },
      `the virtual server ${serverKey(server)}`,
      (attributes) => destinationIn(attributes, server.family),
    )
  }

  async setTimeouts(timeouts: Timeouts): Promise<void> {
    const write = (message: MessageBuffer) => {
      for (const name of ['tcp', 'tcpFin', 'udp'] as const) message.hostU32(TIMEOUTS[name], timeouts[name])
    }
    const [refused] = await this.#netlink.send([{ command: command.setConfig, write }])
    if (refused) throw new KpngError('refused', `The kernel refused timeouts of IPVS: ${errnoText(refused.errno)}.`)
  }

  close(): void {
    this.#netlink.close()
  }
}
