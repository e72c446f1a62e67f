import type { Server, ServerResponse } from 'node:http'
import type { Family } from '@kpng/api'
import { closeServer, openServer } from '../server/listen.js'
import type { HealthCheck } from './local-endpoints.js'
import type { ListenAddress } from './node-port-listen.js'

/** Answers the health checks of one Service on its port, on each of the node's addresses. */
export class HealthCheckServer {
  readonly #health: { readonly healthy: boolean }
  readonly #servers: Server[] = []
  check: HealthCheck

  constructor(check: HealthCheck, health: { readonly healthy: boolean }) {
    this.check = check
    this.#health = health
  }

  /** On all addresses or, when one of them cannot be had, on none. */
  async open(addresses: readonly ListenAddress[]): Promise<void> {
    try {
      for (const { host, family } of addresses) {
        const where = { host, port: this.check.port, ipv6Only: family === 'IPv6' }
        this.#servers.push(await openServer(where, (_, response) => this.#answer(family, response)))
      }
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** Whether the same ports serve a check: only its endpoints may differ. */
  canServe({ port, families }: HealthCheck): boolean {
    return port === this.check.port && families.join() === this.check.families.join()
  }

  update(check: HealthCheck): void {
    this.check = check
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.splice(0).map(closeServer))
  }

  #answer(family: Family, response: ServerResponse): void {
    const { namespace, name, localEndpoints } = this.check
    const count = localEndpoints[family]
    const { healthy } = this.#health
    response.writeHead(count > 0 && healthy ? 200 : 503, {
      'Content-Type': 'application/json',
      'X-Content-Type-Options': 'nosniff',
      'X-Load-Balancing-Endpoint-Weight': String(count),
    })
    const body = { service: { namespace, name }, localEndpoints: count, serviceProxyHealthy: healthy }
    // Byte for byte what kube-proxy prints: tabs, and no line feed at the end.
    response.end(JSON.stringify(body, undefined, '\t'))
  }
}
