import type { Socket } from 'node:net'

const probeIntervalMs = 1000
const nothing = Buffer.alloc(0)

/**
 * Finds resets on sockets that are not being read: those that are paused because the other side is slow, and those whose peer has ended
 * its side. Node does not poll such a socket, so a reset would go unnoticed and both file descriptors would stay open. Writing zero
 * bytes sends nothing, but fails if the connection was reset or has timed out; the socket is then destroyed as after any failed write.
 */
export class UnreadSockets {
  readonly #sockets = new Set<Socket>()
  #timer: NodeJS.Timeout | undefined

  add(socket: Socket): void {
    this.#sockets.add(socket)
    this.#timer ??= setInterval(() => this.#probe(), probeIntervalMs).unref()
  }

  delete(socket: Socket): void {
    this.#sockets.delete(socket)
  }

  #probe(): void {
    if (this.#sockets.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    for (const socket of this.#sockets) {
      // A write that is under way is polled, and fails by itself.
      if (socket.writable && socket.writableLength === 0) socket.write(nothing)
    }
  }
}
