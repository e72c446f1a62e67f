import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream'
import { createGunzip, createInflate } from 'node:zlib'
import { request as undiciRequest } from 'undici'
import type { ConnectionConfig } from './config.js'
import { Dispatchers } from './dispatchers.js'
import { type FindOptions, findConfig } from './find.js'
import { refuseForeignAnswer } from './foreign-answer.js'
import { IdentityReader } from './identity.js'
import { networkError } from './network-error.js'
import { readBody } from './read-body.js'
import { type OnRequest, timed } from './request-report.js'

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
  /** How long it may pause within its answer; 0: for ever. Default 60,000. */
  readonly bodyTimeoutMs?: number
}

/** An answer of the API server, whatever its status. The body must be read to its end, or destroyed. */
export interface KubeResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
}

/** The way to one API server, with credentials. Failures to get an answer at all are KpngErrors. */
export interface KubeConnection {
  /** The server's URL. */
  readonly server: string
  /** Where server and credentials are from, for messages, for instance `context "prod" of /home/ada/.kube/config`. */
  readonly described: string
  /** Sends a request; after 401 the credentials are read again and it is sent once more. */
  request(request: KubeRequest): Promise<KubeResponse>
  /** Ends all connections, also those of running requests. */
  close(): Promise<void>
}

export interface ConnectionOptions extends FindOptions {
  /** How long a credential plugin may take. Default 60,000. */
  readonly execTimeoutMs?: number
  /** Default 10,000. */
  readonly connectTimeoutMs?: number
  /** See `DispatcherOptions`. Default 30,000. */
  readonly keepAliveMs?: number
  /** Whether a person sits at standard input and can answer a credential plugin. Default: when it is a terminal. */
  readonly interactive?: boolean
  /** Told how each request went, for metrics. */
  readonly onRequest?: OnRequest
}

interface Loaded {
  readonly config: ConnectionConfig
  readonly identity: IdentityReader
}

/** Finds the API server and the credentials, checks them (also a plugin's), and says precisely what is wrong with them. */
export async function loadConnection(options: ConnectionOptions = {}): Promise<KubeConnection> {
  const connection = new Connection(options, await load(options))
  await connection.check()
  return connection
}

async function load(options: ConnectionOptions): Promise<Loaded> {
  const config = await findConfig(options)
  const identity = new IdentityReader(config, {
    env: options.env ?? process.env,
    timeoutMs: options.execTimeoutMs ?? 60_000,
    interactive: options.interactive ?? process.stdin.isTTY ?? false,
  })
  return { config, identity }
}

class Connection implements KubeConnection {
  readonly #options: ConnectionOptions
  readonly #dispatchers: Dispatchers
  #loaded: Loaded
  #reloading: Promise<Loaded> | undefined

  constructor(options: ConnectionOptions, loaded: Loaded) {
    this.#options = options
    this.#loaded = loaded
    this.#dispatchers = new Dispatchers({
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

  /** Reads everything that a request needs, so that mistakes show at the start. */
  async check(): Promise<void> {
    this.#dispatchers.for(this.#loaded.config.cluster, await this.#loaded.identity.read())
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
    return this.#dispatchers.close()
  }

  /** Several requests that are refused at once share one reload: it may run a credential plugin. */
  async #reload(): Promise<void> {
    this.#reloading ??= load(this.#options).finally(() => {
      this.#reloading = undefined
    })
    this.#loaded = await this.#reloading
  }

  async #send(request: KubeRequest, { config, identity }: Loaded): Promise<KubeResponse> {
    const who = await identity.read()
    const dispatcher = this.#dispatchers.for(config.cluster, who)
    const query = request.query && new URLSearchParams(request.query).toString()
    const timing = timed(request, config.cluster.server, this.#options.onRequest ?? (() => {}))
    try {
      const { statusCode, headers, body } = await undiciRequest(
        `${config.cluster.server}${request.path}${query ? `?${query}` : ''}`,
        {
          dispatcher,
          method: request.method ?? 'GET',
          headers: {
            ...who.headers,
            accept: 'application/json',
            // Compressing costs the API server more than the network saves; client-go's own daemons ask the same.
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
      await refuseForeignAnswer(response, request.path, config)
      return response
    } catch (error) {
      if (request.signal?.aborted) throw request.signal.reason
      throw networkError(error, config)
    }
  }
}

function decompressed(body: Readable, encoding: string | string[] | undefined): Readable {
  // Whoever reads the body gets its errors; without a listener one in a body that nobody reads on would end the process.
  body.on('error', () => {})
  if (encoding !== 'gzip' && encoding !== 'deflate') return body
  return pipeline(body, encoding === 'gzip' ? createGunzip() : createInflate(), () => {})
}
