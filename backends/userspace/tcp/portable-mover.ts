import { connect, type Socket } from 'node:net'
import { type ByteMover, keepAlive } from './byte-mover.js'
import { ReadBuffer } from './read-buffer.js'

/** Takes what was read from an endpoint. False: no more for now. */
type Reader = (bytes: Uint8Array, memory: ReadBuffer) => boolean

/**
 * The mover that works everywhere. Reads and writes by hand: `pipe` and `pipeline` cost more for each chunk. What endpoints
 * send, which is most of the traffic, is read into memory that is used again; Node offers that for sockets that connect, not for
 * those that are accepted.
 */
export function portableByteMover(): ByteMover {
  const readers = new WeakMap<Socket, { read: Reader }>()
  return {
    connect({ ip, port }) {
      const reader: { read: Reader } = { read: () => false }
      const memory = new ReadBuffer()
      const onread = {
        buffer: memory.next,
        callback: (length: number, buffer: Uint8Array) =>
          reader.read(length === buffer.length ? buffer : buffer.subarray(0, length), memory),
      }
      const socket = connect({ host: ip, port, allowHalfOpen: true, noDelay: true, ...keepAlive, onread })
      socket.pause()
      readers.set(socket, reader)
      return socket
    },
    move({ client, endpoint, counters }, onDone) {
      let toEndpoint = 0
      let toClient = 0
      let open = 2
      const closed = () => {
        if (--open === 0) onDone({ toEndpoint, toClient })
      }
      client.on('data', (chunk: Buffer) => {
        toEndpoint += chunk.length
        counters.bytesToEndpoint += chunk.length
        if (!endpoint.write(chunk)) client.pause()
      })
      const reader = readers.get(endpoint)
      if (!reader) throw new TypeError('The endpoint socket was not made by this mover.')
      reader.read = (bytes, memory) => {
        toClient += bytes.length
        counters.bytesToClient += bytes.length
        const more = client.write(bytes)
        memory.passedOn(bytes.length, client.writableLength > 0)
        return more
      }
      join(client, endpoint, closed)
      join(endpoint, client, closed)
      client.resume()
      endpoint.resume()
    },
  }
}

function join(from: Socket, to: Socket, closed: () => void): void {
  to.on('drain', () => from.resume())
  from.on('end', () => to.end())
  from.on('close', (hadError: boolean) => {
    // Whoever waits for an answer shall learn that it will not come, and how: a reset is passed on as a reset.
    if (!to.destroyed) {
      if (hadError || !from.readableEnded) to.resetAndDestroy()
      else if (!to.writableEnded) to.destroy()
    }
    closed()
  })
}
