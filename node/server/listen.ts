import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { KpngError, type Log, messageOf } from '@kpng/api'
import { HttpConnections, type HttpLimits, httpServerOptions } from '@kpng/api/node'
import { type Refusal, refuseOtherSites } from './refusal.js'
import { sendText } from './respond.js'

/** Probes and scrapes are short and rare. All HTTP servers of a process share the connections. */
const limits: HttpLimits = {
  maxConnections: 512,
  maxConnectionsPerClient: 64,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  idleTimeoutMs: 5000,
  answerTimeoutMs: 30_000,
  maxBodyBytes: 1024,
  // However many clients do not read their answers, a load balancer still gets its own.
  mayCutAnswers: true,
}
const connections = new HttpConnections(limits)

export type HttpHandler = (request: IncomingMessage, response: ServerResponse) => void

export interface ListenOptions {
  /** What it is, for messages: `health`, `metrics`. */
  readonly name: string
  /** `address:port` or `[address]:port`. A wildcard of either family means both, as in Go. */
  readonly address: string
  readonly handler: HttpHandler
  /** Which requests are not answered. Default: those that pages of other sites send. */
  readonly refuse?: Refusal
  readonly log: Log
  /** Ends it. */
  readonly signal: AbortSignal
  /** Whether a port that cannot be opened is fatal: kube-proxy's `bindAddressHardFail`. Default false. */
  readonly hardFail?: boolean
  /** How long until the next try otherwise. Default 5,000, as in kube-proxy. */
  readonly retryIntervalMs?: number
  /** Told when the port cannot be opened, the first time of several. */
  readonly onFailed?: (error: KpngError) => void
}

export interface Listening {
  /** The port, once it is open. */
  readonly port: number | undefined
  close(): Promise<void>
}

/**
 * Serves HTTP on an address. States: *open*; *waiting* for the next try after the port could not be opened; *closed*. Rejects only with
 * `hardFail`; else it resolves after the first try, whatever came of it.
 */
export async function listen(options: ListenOptions): Promise<Listening> {
  const listener = new Listener(options)
  await listener.start()
  return listener
}

class Listener implements Listening {
  readonly #options: ListenOptions
  #server: Server | undefined
  #retry: NodeJS.Timeout | undefined
  #failed = false
  #closed = false

  constructor(options: ListenOptions) {
    this.#options = options
  }

  get port(): number | undefined {
    const address = this.#server?.address() as AddressInfo | null | undefined
    return address?.port
  }

  async start(): Promise<void> {
    const { signal, hardFail } = this.#options
    signal.addEventListener('abort', this.#onAbort, { once: true })
    if (signal.aborted) this.#closed = true
    const error = await this.#try()
    if (error && hardFail) {
      await this.close()
      throw error
    }
  }

  readonly #onAbort = () => void this.close()

  async #try(): Promise<KpngError | undefined> {
    if (this.#closed) return undefined
    const { name, address, handler, refuse, log, hardFail, retryIntervalMs = 5000, onFailed } = this.#options
    try {
      const server = await openServer(hostAndPort(address), handler, refuse)
      if (this.#closed) await closeServer(server)
      else this.#server = server
      if (this.#failed) log.info('A port could be opened at last', { name, address })
      else log.detail(1, 'Serving', { name, address, port: this.port })
      return undefined
    } catch (cause) {
      const error = cannotServe(name, address, cause)
      const next = hardFail ? {} : { retryInMs: retryIntervalMs }
      if (!this.#failed) {
        log.error('Cannot open a port', { error: error.message, ...next })
        onFailed?.(error)
      } else log.detail(2, 'Still cannot open a port', { error: error.message, ...next })
      this.#failed = true
      if (!hardFail && !this.#closed) this.#retry = setTimeout(() => void this.#try(), retryIntervalMs).unref()
      return error
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    const server = this.#server
    this.#server = undefined
    if (server) await closeServer(server)
  }
}

function cannotServe(name: string, address: string, cause: unknown): KpngError {
  const inUse = (cause as NodeJS.ErrnoException).code === 'EADDRINUSE'
  const why = inUse
    ? 'the port is in use. Stop what uses it (kube-proxy, on a node that had it), or choose another address'
    : messageOf(cause)
  return new KpngError('unavailable', `The ${name} server cannot listen on ${address}: ${why}.`, { cause })
}

export function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(':')
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) }
}

const isWildcard = (host: string) => host === '0.0.0.0' || host === '::'

export interface OpenOptions {
  readonly host: string
  readonly port: number
  /** Keeps IPv4 away from an IPv6 wildcard. Default false. */
  readonly ipv6Only?: boolean
}

/** Opens a server, or rejects with the system's error. */
export async function openServer(
  { host, port, ipv6Only }: OpenOptions,
  handler: HttpHandler,
  refuse: Refusal = refuseOtherSites,
): Promise<Server> {
  const server = createServer(httpServerOptions(limits))
  connections.serve(server, (request, response) => {
    const problem = refuse(request)
    if (problem === undefined) handler(request, response)
    else sendText(response, 403, `${problem}\n`)
  })
  // Without a host Node takes both families, or IPv4 alone where there is no IPv6.
  const where = isWildcard(host) && ipv6Only === undefined ? { port } : { host, port, ipv6Only: ipv6Only ?? false }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(where, () => {
      server.off('error', reject)
      resolve()
    })
  })
  // A connection that fails is its own matter; without a listener it would end the process.
  server.on('error', () => {})
  return server
}

export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
