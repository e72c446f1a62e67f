import { Agent, type Dispatcher, ProxyAgent } from 'undici'
import type { ClusterConfig } from './config.js'
import type { Identity } from './identity.js'
import { proxyOf } from './proxy.js'

export interface DispatcherOptions {
  readonly connectTimeoutMs: number
  /**
   * A connection without traffic is probed after this time; one that does not answer ten probes, a second apart, is dead. So a
   * server that vanished is noticed soon, while a watch on which nothing happens stays.
   */
  readonly keepAliveMs: number
  readonly env: NodeJS.ProcessEnv
}

/**
 * The connections to one API server. TLS material belongs to a connection, so when it rotates new requests get new
 * connections, and running watches end in their own time on the old ones.
 */
export class Dispatchers {
  readonly #options: DispatcherOptions
  readonly #open = new Set<Dispatcher>()
  #current: { readonly key: string; readonly dispatcher: Dispatcher } | undefined

  constructor(options: DispatcherOptions) {
    this.#options = options
  }

  for(cluster: ClusterConfig, { ca, cert, key }: Identity): Dispatcher {
    const proxy = proxyOf(cluster, this.#options.env)
    const { server, tlsServerName, insecureSkipTlsVerify } = cluster
    const sameAs = JSON.stringify([server, tlsServerName, insecureSkipTlsVerify, ca, cert, key, proxy?.href])
    if (this.#current?.key === sameAs) return this.#current.dispatcher
    const previous = this.#current?.dispatcher
    const connect = {
      timeout: this.#options.connectTimeoutMs,
      keepAlive: true,
      keepAliveInitialDelay: this.#options.keepAliveMs,
      rejectUnauthorized: !insecureSkipTlsVerify,
      ...(ca && { ca }),
      ...(cert && key && { cert, key }),
      ...(tlsServerName && { servername: tlsServerName }),
    }
    const dispatcher = proxy ? proxied(proxy, connect) : new Agent({ connect })
    this.#open.add(dispatcher)
    this.#current = { key: sameAs, dispatcher }
    if (previous) this.#retire(previous)
    return dispatcher
  }

  /** Ends all connections at once. */
  async close(): Promise<void> {
    this.#current = undefined
    await Promise.all([...this.#open].map((dispatcher) => dispatcher.destroy()))
    this.#open.clear()
  }

  #retire(dispatcher: Dispatcher): void {
    dispatcher.close().then(
      () => this.#open.delete(dispatcher),
      () => this.#open.delete(dispatcher),
    )
  }
}

interface Connect {
  readonly timeout: number
  readonly keepAlive: boolean
  readonly keepAliveInitialDelay: number
  readonly rejectUnauthorized: boolean
}

function proxied(proxy: URL, connect: Connect): ProxyAgent {
  // What is for the server (its CA, our certificate) is no business of the proxy.
  const { timeout, keepAlive, keepAliveInitialDelay } = connect
  return new ProxyAgent({
    uri: proxy.href,
    requestTls: connect,
    proxyTls: { timeout, keepAlive, keepAliveInitialDelay },
  })
}
