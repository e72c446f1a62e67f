import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream'
import { createGunzip, createInflate } from 'node:zlib'
import { request as undiciRequest } from 'undici'
import type { ConnectionConfig } from './config.js'
import { CredentialReader } from './credentials.js'
import { networkError, readBody, refuseForeignAnswer } from './errors.js'
import { type LoadingOptions, loadConfig } from './loading-rules.js'
import { Transport } from './transport.js'

export interface KubeRequest {
  /** Default GET. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the server's URL, for instance `/api/v1/services`. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: string
  /** Of `body`. Default application/json. */
  readonly contentType?: string
  readonly signal?: AbortSignal
  /** How long the server may take to begin its answer. Default 60,000. */
  readonly headersTimeoutMs?: number
  /** How long it may pause within its answer; 0: without limit. Default 60,000. */
  readonly bodyTimeoutMs?: number
}

/** An answer of the API server, with any status. The body must be read to its end, or destroyed. */
export interface KubeResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
}

/** A connection to one API server, with credentials. If there is no answer at all, requests fail with a KpngError. */
export interface KubeConnection {
  /** The server's URL. */
  readonly server: string
  /**
   * Tells this cluster from others: the server's URL and a digest of the authority that its certificate is checked with. Clusters in the same
   * private network often have the same URL.
   */
  readonly cluster: string
  /** Where server and credentials are configured, for messages, for instance `context "prod" of /home/ada/.kube/config`. */
  readonly described: string
  /** Sends a request; after 401 the credentials are read again and it is sent once more. */
  request(request: KubeRequest): Promise<KubeResponse>
  /** Ends all connections, also those of running requests. */
  close(): Promise<void>
}

export interface ConnectionOptions extends LoadingOptions {
  /** How long a credential plugin may take. Default 60,000. */
  readonly execTimeoutMs?: number
  /** Default 10,000. */
  readonly connectTimeoutMs?: number
  /** See `TransportOptions`. Default 30,000. */
  readonly keepAliveMs?: number
  /** Whether a person at standard input can answer a credential plugin. Default: if it is a terminal. */
  readonly interactive?: boolean
  /** Called after each request, for metrics. */
  readonly onRequest?: OnRequest
}

/** How one request to the API server went. A request that is sent again with other credentials counts twice. */
export interface RequestReport {
  readonly method: string
  /** The server's host and port. */
  readonly host: string
  /** Undefined if there was no answer. */
  readonly status: number | undefined
  /** Until the answer was read or dropped; for a watch, which is meant to last, until it began. */
  readonly durationMs: number
}

export type OnRequest = (report: RequestReport) => void

interface Loaded {
  readonly config: ConnectionConfig
  readonly credentials: CredentialReader
}

/** Finds the API server and the credentials, and checks them (also a plugin's). Errors say exactly what is wrong. */
export async function loadConnection(options: ConnectionOptions = {}): Promise<KubeConnection> {
  const connection = new Connection(options, await load(options))
  await connection.check()
  return connection
}

async function load(options: ConnectionOptions): Promise<Loaded> {
  const config = await loadConfig(options)
  const credentials = new CredentialReader(config, {
    env: options.env ?? process.env,
    timeoutMs: options.execTimeoutMs ?? 60_000,
    interactive: options.interactive ?? process.stdin.isTTY ?? false,
  })
  return { config, credentials }
}

class Connection implements KubeConnection {
  readonly #options: ConnectionOptions
  readonly #transport: Transport
  #loaded: Loaded
  #reloading: Promise<Loaded> | undefined
  #authority = ''

  constructor(options: ConnectionOptions, loaded: Loaded) {
    this.#options = options
    this.#loaded = loaded
    this.#transport = new Transport({
      connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
      keepAliveMs: options.keepAliveMs ?? 30_000,
      env: options.env ?? process.env,
    })
  }

  get server(): string {
    return this.#loaded.config.cluster.server
  }

  get described(): string {
    return this.#loaded.config.described
  }

  get cluster(): string {
    return this.server + this.#authority
  }

  /** Reads everything that a request needs, so that mistakes are found at the start. */
  async check(): Promise<void> {
    const credentials = await this.#loaded.credentials.read()
    this.#transport.dispatcherFor(this.#loaded.config.cluster, credentials)
    const { ca } = credentials
    if (ca !== undefined) this.#authority = ` (CA ${createHash('sha256').update(ca).digest('hex').slice(0, 16)})`
  }

  async request(request: KubeRequest): Promise<KubeResponse> {
    const used = this.#loaded
    const response = await this.#send(request, used)
    if (response.status !== 401) return response
    await readBody(response.body).catch(() => '')
    if (this.#loaded === used) await this.#reload()
    return this.#send(request, this.#loaded)
  }

  close(): Promise<void> {
    return this.#transport.close()
  }

  /** Several requests that are refused at once share one reload: it may run a credential plugin. */
  async #reload(): Promise<void> {
    this.#reloading ??= load(this.#options).finally(() => {
      this.#reloading = undefined
    })
    this.#loaded = await this.#reloading
  }

  async #send(request: KubeRequest, { config, credentials }: Loaded): Promise<KubeResponse> {
    const own = await credentials.read()
    const dispatcher = this.#transport.dispatcherFor(config.cluster, own)
    const query = request.query && new URLSearchParams(request.query).toString()
    const timing = timed(request, config.cluster.server, this.#options.onRequest ?? (() => {}))
    try {
      const { statusCode, headers, body } = await undiciRequest(
        `${config.cluster.server}${request.path}${query ? `?${query}` : ''}`,
        {
          dispatcher,
          method: request.method ?? 'GET',
          headers: {
            ...own.headers,
            accept: 'application/json',
            // Compression costs the API server more than the network gains; Kubernetes' own daemons do not ask for it either.
            'accept-encoding': 'identity',
            'user-agent': 'kpng',
            ...(request.body !== undefined && { 'content-type': request.contentType ?? 'application/json' }),
          },
          body: request.body ?? null,
          signal: request.signal ?? null,
          headersTimeout: request.headersTimeoutMs ?? 60_000,
          bodyTimeout: request.bodyTimeoutMs ?? 60_000,
        },
      ).catch((error) => {
        timing.failed()
        throw error
      })
      timing.answered(statusCode, body)
      const response = { status: statusCode, headers, body: decompressed(body, headers['content-encoding']) }
      await refuseForeignAnswer(statusCode, headers['content-type'], response.body, request.path, config)
      return response
    } catch (error) {
      if (request.signal?.aborted) throw request.signal.reason
      throw networkError(error, config)
    }
  }
}

function decompressed(body: Readable, encoding: string | string[] | undefined): Readable {
  // The reader of the body gets its errors. Without a listener, an error in a body that nobody reads would end the process.
  body.on('error', () => {})
  if (encoding !== 'gzip' && encoding !== 'deflate') return body
  return pipeline(body, encoding === 'gzip' ? createGunzip() : createInflate(), () => {})
}

/** Measures a request from now on. Call one of the two functions, once. */
function timed({ method = 'GET', query }: KubeRequest, server: string, onRequest: OnRequest) {
  const startedMs = performance.now()
  const done = (status: number | undefined) =>
    onRequest({ method, host: new URL(server).host, status, durationMs: performance.now() - startedMs })
  return {
    failed: () => done(undefined),
    answered: (status: number, body: Readable) => {
      if (query?.watch !== undefined) done(status)
      else body.once('close', () => done(status))
    },
  }
}
