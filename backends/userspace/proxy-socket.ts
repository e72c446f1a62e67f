import type { Place } from './capture/capture.js'

/** The listening socket behind one portal. */
export interface ProxySocket {
  /** Where it listens, with the port that it got. */
  readonly place: Place
  /** Stops listening. TCP connections go on, UDP sessions end. */
  close(): Promise<void>
}
