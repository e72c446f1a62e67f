import type { Socket } from 'node:net'
import type { EndpointAddress } from '../balancer/balancer.js'
import type { ServicePortCounters } from '../counters.js'

/** A peer that vanished without a word, as machines do whose power fails, is found out after this time and some seconds more. */
export const keepAlive = { keepAlive: true, keepAliveInitialDelay: 15_000 } as const

/** A client and the endpoint it was given, both connected, neither read from yet. */
export interface SocketPair {
  readonly client: Socket
  /** Made by the mover's `connect`. */
  readonly endpoint: Socket
  /** Counts while bytes move, so that a long download shows before it ends. */
  readonly counters: Pick<ServicePortCounters, 'bytesToEndpoint' | 'bytesToClient'>
  /** The same of this pair alone. */
  readonly moved: { -readonly [K in keyof Moved]: Moved[K] }
}

export interface Moved {
  readonly toEndpoint: number
  readonly toClient: number
}

/**
 * Carries bytes both ways between two sockets, with back-pressure and half-close: the end of one direction is passed on and
 * the other goes on. An error on one side resets the other.
 */
export interface ByteMover {
  /** Begins to connect to an endpoint. Nothing is read before `move`: how it is read is the mover's affair. */
  connect(endpoint: EndpointAddress): Socket
  /** `onDone` is called once, when both sockets are closed. */
  move(pair: SocketPair, onDone: (moved: Moved) => void): void
}
