import type { Server, ServerResponse } from 'node:http'
import { type Family, familyOf } from '@kpng/api'
import { closeServer, openServer } from '../server/listen.js'
import type { HealthCheck } from './local-endpoints.js'

/** Answers the health checks of one Service on its port, on each address of the node that serves node ports. */
export class HealthCheckServer {
  /** May be replaced by one with the same port. */
  check: HealthCheck
  readonly #health: { readonly healthy: boolean }
  readonly #servers = new Map<string, Server>()

  constructor(check: HealthCheck, health: { readonly healthy: boolean }) {
    this.check = check
    this.#health = health
  }

  /** Listens at these addresses and no others. Rejects if one of them cannot be opened; the others are served. */
  async listen(hosts: readonly string[]): Promise<void> {
    const leaving = [...this.#servers.keys()].filter((host) => !hosts.includes(host))
    await Promise.all(leaving.map((host) => this.#close(host)))
    const failures: unknown[] = []
    for (const host of hosts) {
      if (!this.#servers.has(host)) await this.#open(host).catch((error) => failures.push(error))
    }
    if (failures.length > 0) throw failures[0]
  }

  async close(): Promise<void> {
    await this.listen([])
  }

  async #open(host: string): Promise<void> {
    const family = familyOf(host)
    const where = { host, port: this.check.port, ipv6Only: family === 'IPv6' }
    this.#servers.set(host, await openServer(where, (_, response) => this.#answer(family, response)))
  }

  async #close(host: string): Promise<void> {
    const server = this.#servers.get(host)
    this.#servers.delete(host)
    if (server) await closeServer(server)
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
