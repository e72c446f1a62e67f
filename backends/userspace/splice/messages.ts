import type { LogFields } from '@kpng/api'
import type { ConnectionRecord, HeldFrontend } from '@kpng/client'
import type { Place } from '../capture/capture.js'
import type { OpenConnections } from '../forwarder.js'
import type { InsideAddresses } from '../insiders.js'
import type { Portal } from '../portal.js'

// What the main thread and a thread that forwards tell each other.

/** How a thread is started. */
export interface WorkerData {
  /** An eventfd. The main thread writes to it after each message. */
  readonly wake: number
  /** Shared: see `Descriptors`. */
  readonly openFiles: Int32Array
  readonly openFilesLimit: number
  readonly drainMs: number
  readonly dialTimeoutsMs: readonly number[]
}

/** What the main thread wants to be told. */
export interface Wishes {
  /** The largest level of details that is logged. */
  readonly verbosity: number
  /** Connections that ended. */
  readonly connections: boolean
}

export interface WorkerMethods {
  wish(wishes: Wishes): void
  setInside(addresses: InsideAddresses): void
  /** @param counters shared memory, if the service port is new */
  setServicePort(name: string, portals: readonly Portal[], counters: Float64Array | undefined): void
  applied(): Promise<void>
  /** @param fd listens already */
  listen(portalId: string, place: Place, fd: number): Promise<void>
  stopListening(fd: number): Promise<void>
  held(portalId: string): Promise<HeldFrontend | undefined>
  open(limit: number): Promise<OpenConnections>
  cleanUpStaleSessions(): void
  abortAll(): void
  close(): Promise<void>
}

/** To a thread: a call of one of its methods. With an id it is answered. */
export interface Request {
  readonly method: keyof WorkerMethods
  readonly args: readonly unknown[]
  readonly id?: number
}

/** From a thread. */
export type Report =
  | { readonly is: 'ready' }
  | { readonly is: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly is: 'log'; readonly level: LogLevel; readonly message: string; readonly fields: LogFields | undefined }
  | { readonly is: 'ended'; readonly record: ConnectionRecord }

/** A number: of a detail. */
export type LogLevel = 'error' | 'warn' | 'info' | number
