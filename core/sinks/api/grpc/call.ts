import { constants, type ServerHttp2Stream } from 'node:http2'
import { type Log, messageOf } from '@kpng/api'
import { quiet, Requests } from './requests.js'
import { RpcError, Status, type StatusCode, statusHeaders } from './status.js'

/** Who calls. */
export interface Peer {
  /** `127.0.0.1:40222`, `[::1]:40222`, or the server's own address for a unix socket. */
  readonly address: string
  /** The subject of the client's certificate, `CN=node-1,O=kpng`; undefined without TLS. */
  readonly subject: string | undefined
}

/** One call, as its handler sees it: messages in, messages out, and a signal for the moment it is over. */
export interface Call {
  readonly path: string
  readonly peer: Peer
  /**
   * Aborted the moment the call is over, for whatever cause: the client went, its deadline passed, the server stops, the handler
   * returned. The reason is an RpcError.
   */
  readonly signal: AbortSignal
  /**
   * The next request message; undefined once the client has half-closed, which some clients do on their way out too. Rejects when
   * the call is over.
   */
  nextRequest(): Promise<Buffer | undefined>
  /**
   * Sends framed messages (see `frame`), neither copied nor changed: one buffer may be given to many calls. Undefined if the call may take
   * more at once, otherwise a promise that resolves when it may: wait for it, or a client that does not read costs memory. It rejects when the call is over.
   */
  write(framed: Buffer): Promise<void> | undefined
}

/** Returning ends the call well; an RpcError ends it with that status; any other error is logged and told as INTERNAL. */
export type Handler = (call: Call) => Promise<void>

export interface CallSettings {
  readonly path: string
  readonly peer: Peer
  readonly timeoutMs: number | undefined
  readonly maxRequestBytes: number
  /** How long a call that is over may hold its stream while the client does not finish it. */
  readonly lingerMs: number
  readonly log: Log
}

export const responseHeaders = {
  ':status': 200,
  'content-type': 'application/grpc',
  'grpc-accept-encoding': 'identity',
} as const

// Made once: thousands of clients may go at the same time, and a stack for each would be most of the work.
const callIsOver = new RpcError(Status.CANCELLED, 'The call is over')
const clientHasGone = new RpcError(Status.CANCELLED, 'The client has gone')

/** A longer timer would fire at once; a call with a longer limit has none. */
const longestTimerMs = 2 ** 31 - 1

/**
 * States: open → over (status decided, trailers on their way, signal aborted) → closed (the stream is gone). The client going
 * leads from any state to closed.
 */
export class ServerCall implements Call {
  readonly path: string
  readonly peer: Peer
  readonly #stream: ServerHttp2Stream
  readonly #settings: CallSettings
  readonly #requests: Requests
  readonly #aborter = new AbortController()
  #drained: { promise: Promise<void>; resolve(): void; reject(error: Error): void } | undefined
  #deadline: NodeJS.Timeout | undefined
  #linger: NodeJS.Timeout | undefined

  constructor(stream: ServerHttp2Stream, settings: CallSettings) {
    this.path = settings.path
    this.peer = settings.peer
    this.#stream = stream
    this.#settings = settings
    this.#requests = new Requests(stream, settings.maxRequestBytes)
    // `aborted` comes with the RST_STREAM itself, `close` may wait for bytes that nobody reads.
    stream.on('aborted', () => this.#clientGone())
    stream.on('close', () => this.#clientGone())
    stream.on('drain', () => this.#drain())
    const { timeoutMs } = settings
    if (timeoutMs !== undefined && timeoutMs <= longestTimerMs) {
      const passed = new RpcError(Status.DEADLINE_EXCEEDED, `The deadline of ${timeoutMs} ms has passed`)
      this.#deadline = setTimeout(() => this.abort(passed), timeoutMs)
    }
  }

  get signal(): AbortSignal {
    return this.#aborter.signal
  }

  nextRequest(): Promise<Buffer | undefined> {
    return this.#requests.next()
  }

  write(framed: Buffer): Promise<void> | undefined {
    if (this.signal.aborted) return quiet(Promise.reject(this.signal.reason))
    if (this.#stream.write(framed)) return undefined
    this.#drained ??= waiter()
    return this.#drained.promise
  }

  async run(handler: Handler): Promise<void> {
    try {
      this.#stream.respond(responseHeaders, { waitForTrailers: true })
      await handler(this)
      this.#end(Status.OK)
    } catch (error) {
      this.#endWith(error)
    }
  }

  /** Ends the call from the server's side, whatever its handler is doing. A client that does not read is cut off after the linger. */
  abort(reason: RpcError): void {
    if (!this.#end(reason.code, reason.message, reason)) return
    this.#cutAfterLinger(constants.NGHTTP2_CANCEL)
  }

  #endWith(error: unknown): void {
    const { log } = this.#settings
    const fields = { method: this.path, peer: this.peer.address, error: messageOf(error) }
    if (this.signal.aborted) {
      if (error !== this.signal.reason) log.detail(4, 'A handler failed after its call was over', fields)
      return
    }
    if (error instanceof RpcError) {
      log.detail(4, 'Call refused', { ...fields, code: error.code })
      this.#end(error.code, error.message, error)
      return
    }
    log.error('A call failed: this is a fault in kpng', {
      ...fields,
      stack: error instanceof Error ? error.stack : undefined,
    })
    this.#end(Status.INTERNAL, 'The server failed to answer: its log says why')
  }

  /** Decides the status, once. Whatever was written before goes out ahead of the trailers. */
  #end(code: StatusCode, message = '', reason = callIsOver): boolean {
    if (this.signal.aborted) return false
    const stream = this.#stream
    if (!stream.destroyed && !stream.closed) {
      stream.once('wantTrailers', () => {
        if (!stream.destroyed && !stream.closed) stream.sendTrailers(statusHeaders(code, message))
        this.#cutAfterLinger(constants.NGHTTP2_NO_ERROR)
      })
      stream.end()
    }
    this.#over(reason)
    return true
  }

  #clientGone(): void {
    this.#over(clientHasGone)
    if (this.#stream.destroyed) clearTimeout(this.#linger)
  }

  #over(reason: RpcError): void {
    if (this.signal.aborted) return
    clearTimeout(this.#deadline)
    this.#aborter.abort(reason)
    this.#requests.stop(reason)
    this.#drained?.reject(reason)
    this.#drained = undefined
  }

  #drain(): void {
    this.#drained?.resolve()
    this.#drained = undefined
  }

  /**
   * A stream is gone only when both sides have ended it. Clients do so when they see the trailers; RST_STREAM at once would overtake
   * trailers that still wait for the socket.
   */
  #cutAfterLinger(code: number): void {
    clearTimeout(this.#linger)
    this.#linger = setTimeout(() => {
      if (!this.#stream.destroyed) this.#stream.close(code)
    }, this.#settings.lingerMs).unref()
  }
}

function waiter() {
  let resolve = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = quiet(
    new Promise<void>((resolved, rejected) => {
      resolve = resolved
      reject = rejected
    }),
  )
  return { promise, resolve, reject }
}
