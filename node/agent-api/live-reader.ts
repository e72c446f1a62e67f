import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipHeader, type LiveEvent } from './live-event.js'

/** A reader that is further behind than this is ended. It comes back, and gets what it missed or everything. */
const maxUnreadBytes = 8 * 1024 * 1024

/** Somebody who reads the stream. */
export class LiveReader {
  /** Whether it takes compressed events. */
  readonly isGzip: boolean
  readonly #response: ServerResponse

  /** Begins the answer. */
  constructor({ headers }: IncomingMessage, response: ServerResponse) {
    this.isGzip = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))
    this.#response = response
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept-Encoding',
      ...(this.isGzip ? { 'Content-Encoding': 'gzip' } : {}),
    })
    response.flushHeaders()
    if (this.isGzip) response.write(gzipHeader)
  }

  get isGone(): boolean {
    return this.#response.destroyed
  }

  onGone(callback: () => void): void {
    this.#response.once('close', callback)
  }

  send(event: LiveEvent): void {
    this.#response.write(this.isGzip ? event.packed : event.plain)
    if (this.#response.writableLength > maxUnreadBytes) this.end()
  }

  end(): void {
    this.#response.destroy()
  }
}
