import { connect, type Socket } from 'node:net'
import { type ByteMover, keepAlive } from './byte-mover.js'
import { ReadBuffer } from './read-buffer.js'
import { UnreadSockets } from './unread-sockets.js'

/** Takes what was read from an endpoint. False: no more for now. */
type Reader = (bytes: Uint8Array, memory: ReadBuffer) => boolean

/**
 * The mover that works everywhere. Reads and writes by hand: `pipe` and `pipeline` cost more for each chunk. What endpoints
 * send, which is most of the traffic, is read into memory that is used again; Node offers that for sockets that connect, not for
 * those that are accepted.
 */
export function portableByteMover(): ByteMover {
  const readers = new WeakMap<Socket, { read: Reader }>()
  const unread = new UnreadSockets()
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
    move({ client, endpoint, counters, moved }, onDone) {
      let open = 2
      const closed = () => {
        if (--open === 0) onDone(moved)
      }
      client.on('data', (chunk: Buffer) => {
        moved.toEndpoint += chunk.length
        counters.bytesToEndpoint += chunk.length
        if (endpoint.write(chunk)) return
        client.pause()
        unread.add(client)
      })
      const reader = readers.get(endpoint)
      if (!reader) throw new TypeError('The endpoint socket was not made by this mover.')
      reader.read = (bytes, memory) => {
        moved.toClient += bytes.length
        counters.bytesToClient += bytes.length
        const more = client.write(bytes)
        memory.passedOn(bytes.length, client.writableLength > 0)
        if (!more) unread.add(endpoint)
        return more
      }
      join(client, endpoint, unread, closed)
      join(endpoint, client, unread, closed)
      client.resume()
      endpoint.resume()
    },
  }
}

function join(from: Socket, to: Socket, unread: UnreadSockets, closed: () => void): void {
  to.on('drain', () => {
    if (from.readableEnded) return
    unread.delete(from)
    from.resume()
  })
  from.on('end', () => {
    unread.add(from)
    to.end()
  })
  from.on('close', (hadError: boolean) => {
    unread.delete(from)
    // A reset, by the peer or by this proxy, is passed on as a reset. After a normal end the rest is still written to the other side.
    const isComplete = !hadError && from.readableEnded && from.writableFinished
    if (!isComplete && !to.destroyed) to.resetAndDestroy()
    closed()
  })
}
