import { hostPort } from '@kpng/api'
import {
  decodeAddress,
  EPOLLIN,
  type EventHandler,
  localAddress,
  resetAndClose,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  systemError,
} from '@kpng/linux/tcp'
import type { Place } from '../capture/capture.js'
import { isOutOfDescriptors } from '../descriptors.js'
import type { Entrance } from '../entrance.js'
import { accept } from '../tcp/accept.js'
import { SpliceCarrier, type SpliceTools } from './carrier.js'

/** Clients that are accepted before others have their turn. */
const atOnce = 64
/** After a failure. The kernel would say again and again that somebody waits. */
const pauseMs = 100
const EAGAIN = 11

const address = new Uint8Array(28)
const length = new Uint8Array(4)

/** Accepts the TCP connections of one portal in this thread. The socket was opened by another. */
export class SpliceProxySocket implements EventHandler {
  readonly place: Place
  readonly #fd: number
  readonly #entrance: Entrance
  readonly #tools: SpliceTools
  #isClosed = false

  constructor(entrance: Entrance, place: Place, fd: number, tools: SpliceTools) {
    this.place = place
    this.#fd = fd
    this.#entrance = entrance
    this.#tools = tools
    tools.loop.add(fd, EPOLLIN, this)
  }

  /** Who opened it counts its file. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#tools.loop.delete(this.#fd)
    this.#tools.calls.close(this.#fd)
  }

  onEvents(): void {
    const { calls } = this.#tools
    for (let count = 0; count < atOnce && !this.#isClosed; count++) {
      length[0] = address.length
      const client = calls.accept4(this.#fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC)
      if (client < 0) {
        const errno = calls.errno()
        if (errno !== EAGAIN) this.#failed(systemError(calls, 'accept', undefined, errno))
        return
      }
      this.#accept(client)
    }
  }

  #accept(client: number): void {
    const { calls } = this.#tools
    const { ip, port } = decodeAddress(address)
    accept(this.#entrance, {
      ip,
      port,
      entranceAddress: () => {
        const entrance = localAddress(calls, client)
        return hostPort(entrance.ip, entrance.port)
      },
      carrier: (events) => new SpliceCarrier(client, port, this.#tools, events),
      reset: () => resetAndClose(calls, client),
    })
  }

  #failed(error: NodeJS.ErrnoException): void {
    // This client is gone again.
    if (error.code === 'ECONNABORTED') return
    const { loop, descriptors } = this.#tools
    if (isOutOfDescriptors(error)) descriptors.report(error)
    else this.#entrance.servicePort.warn('Accept failed', { error: error.message })
    loop.delete(this.#fd)
    loop.later(pauseMs, () => {
      if (!this.#isClosed) loop.add(this.#fd, EPOLLIN, this)
    })
  }
}
