import type { Socket } from 'node:net'
import type { ServicePortCounters } from '../counters.js'

/** A client and the endpoint it was given, both connected, neither read from yet. */
export interface SocketPair {
  readonly client: Socket
  readonly endpoint: Socket
  /** Counts while bytes move, so that a long download shows before it ends. */
  readonly counters: Pick<ServicePortCounters, 'bytesToEndpoint' | 'bytesToClient'>
}

export interface Moved {
  readonly toEndpoint: number
  readonly toClient: number
}

/**
 * Carries bytes both ways between two sockets, with back-pressure and half-close: the end of one direction is passed on and
 * the other goes on. An error on one side resets the other. `onDone` is called once, when both sockets are closed.
 */
export interface ByteMover {
  move(pair: SocketPair, onDone: (moved: Moved) => void): void
}

/**
 * The mover that works everywhere. Reads and writes by hand: `pipe` and `pipeline` cost more per chunk, and larger read
 * buffers or `onread` brought nothing.
 */
export const portableByteMover: ByteMover = {
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
    endpoint.on('data', (chunk: Buffer) => {
      toClient += chunk.length
      counters.bytesToClient += chunk.length
      if (!client.write(chunk)) endpoint.pause()
    })
    join(client, endpoint, closed)
    join(endpoint, client, closed)
    client.resume()
  },
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
