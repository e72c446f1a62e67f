import { isIP } from 'node:net'
import { CidrSet, parseCidrs } from '@kpng/api'
import { checkServerName } from '@kpng/api/node'
import { Agent, type Dispatcher, ProxyAgent } from 'undici'
import { type ClusterConfig, checkProxyUrl } from './config.js'
import type { Credentials } from './credentials.js'

export interface TransportOptions {
  readonly connectTimeoutMs: number
  /**
   * TCP keepalive probes a connection without traffic after this time. If it does not answer ten probes, a second apart, it is
   * dead. So a server that vanished is noticed soon, while a quiet watch stays.
   */
  readonly keepAliveMs: number
  readonly env: NodeJS.ProcessEnv
}

/**
 * The connections to one API server. Certificates belong to a connection. When they rotate, new requests get new connections,
 * and watches end on the old ones at their time.
 */
export class Transport {
  readonly #options: TransportOptions
  readonly #open = new Set<Dispatcher>()
  #current: { readonly key: string; readonly dispatcher: Dispatcher } | undefined

  constructor(options: TransportOptions) {
    this.#options = options
  }

  dispatcherFor(cluster: ClusterConfig, { ca, cert, key }: Credentials): Dispatcher {
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
      checkServerIdentity: checkServerName,
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
  // The server's CA and our certificate are not for the proxy.
  const { timeout, keepAlive, keepAliveInitialDelay } = connect
  return new ProxyAgent({
    uri: proxy.href,
    requestTls: connect,
    proxyTls: { timeout, keepAlive, keepAliveInitialDelay },
  })
}

/**
 * The proxy on the way to the API server: the cluster's `proxy-url`, else that of HTTPS_PROXY, HTTP_PROXY and NO_PROXY. They
 * are read as Go programs read them, so that what works for kubectl works here.
 */
export function proxyOf(cluster: ClusterConfig, env: NodeJS.ProcessEnv): URL | undefined {
  if (cluster.proxyUrl) {
    return checkProxyUrl(cluster.proxyUrl, `proxy-url beside the ${cluster.serverField}`)
  }
  const target = new URL(cluster.server)
  const names = target.protocol === 'https:' ? ['HTTPS_PROXY', 'https_proxy'] : ['HTTP_PROXY', 'http_proxy']
  const name = names.find((candidate) => env[candidate])
  if (!name || isBypassed(target, env.NO_PROXY || env.no_proxy || '')) return undefined
  const value = env[name] ?? ''
  return checkProxyUrl(value.includes('://') ? value : `http://${value}`, `environment variable ${name}`)
}

function isBypassed(target: URL, noProxy: string): boolean {
  const host = target.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  if (host === 'localhost' || host === '::1' || /^127\./.test(host)) return true
  return noProxy
    .split(',')
    .map((rule) => rule.trim().toLowerCase())
    .some((rule) => rule !== '' && matches(rule, host, port))
}

function matches(rule: string, host: string, port: string): boolean {
  if (rule === '*') return true
  if (rule.includes('/')) return new CidrSet(parseCidrs([rule])).has(host)
  const [, name = rule, rulePort] = /^(.*?)(?::(\d+))?$/.exec(isIP(rule) ? '' : rule) ?? []
  const bare = (name || rule).replace(/^\[|\]$/g, '').replace(/^\*?\./, '')
  if (rulePort && rulePort !== port) return false
  // As in Go, `.example.com` is for the names below it, and `example.com` also for itself.
  return host.endsWith(`.${bare}`) || (host === bare && !/^\*?\./.test(rule))
}
