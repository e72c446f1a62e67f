import { type Family, type Log, messageOf } from '@kpng/api'
import type { Changes, NodeView } from '@kpng/client'
import { type FrontendTable, type NodeFacts, nodePortHosts } from '@kpng/dataplane'
import { interfaceAddresses } from '@kpng/linux'
import type { HealthCheckEvent } from './health-check-event.js'
import { HealthCheckServer } from './health-check-server.js'
import { type HealthCheck, healthCheckOf } from './local-endpoints.js'

export interface HealthCheckNodePortsOptions {
  /** Whether the proxy itself is healthy: `ProxyHealth`. */
  readonly health: { readonly healthy: boolean }
  readonly nodeName: string
  readonly log: Log
  /** What this node serves, and on which of its addresses node ports are open. */
  readonly frontends: FrontendTable
  /** Told when a port cannot be opened, once until it can. */
  readonly onEvent?: (event: HealthCheckEvent) => void
  /** The addresses of the machine's interfaces. Default: asks the system. */
  readonly addresses?: () => readonly { readonly ip: string }[]
}

/**
 * Opens a port for each Service with externalTrafficPolicy Local that has a healthCheckNodePort, so that load balancers find the nodes
 * with endpoints. Only Services that changed are looked at, unless the node changed. The addresses of the machine are compared at
 * each sync: a port that could not be opened is tried again, one whose address is gone is closed.
 */
export class HealthCheckNodePorts {
  readonly #options: HealthCheckNodePortsOptions
  readonly #servers = new Map<string, HealthCheckServer>()
  /** What was last reported of a Service whose health check is not served as it should be. */
  readonly #reported = new Map<string, string>()
  /** The Services whose server must be looked at: they changed, or their port could not be opened. */
  readonly #due = new Set<string>()
  #hosts = ''
  #node: NodeFacts | undefined
  #closed = false
  #work: Promise<void> = Promise.resolve()

  constructor(options: HealthCheckNodePortsOptions) {
    this.#options = options
  }

  /** How many are open, or being opened. */
  get size(): number {
    return this.#servers.size
  }

  /** To be called after each sync that succeeded, with the table up to date. Resolves when the ports are as they should be, or could not be. */
  observe(view: NodeView, changes: Changes): Promise<void> {
    const { frontends, addresses = interfaceAddresses } = this.#options
    const everything = changes.full || frontends.node !== this.#node
    const paths = everything ? new Set([...this.#servers.keys(), ...view.services.keys()]) : changes.services.keys()
    this.#node = frontends.node
    const closing: HealthCheckServer[] = []
    for (const path of paths) {
      const before = this.#servers.get(path)
      const after = this.#update(path, healthCheckOf(view.services.get(path), frontends.wantedBy(path)))
      if (before && before !== after) closing.push(before)
      if (after) this.#due.add(path)
      else this.#due.delete(path)
    }
    if (this.#servers.size + closing.length === 0) return this.#work
    const now = addresses()
    const hosts = { IPv4: nodePortHosts(this.#node, 'IPv4', now), IPv6: nodePortHosts(this.#node, 'IPv6', now) }
    this.#work = this.#work.then(() => this.#openAndClose(closing, hosts))
    return this.#work
  }

  /** Closes everything. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#work
    await Promise.all([...this.#servers.values()].map((server) => server.close()))
    this.#servers.clear()
  }

  /** Returns the server for a check: the one that is there, unless the port is another one. */
  #update(path: string, check: HealthCheck | undefined): HealthCheckServer | undefined {
    const server = this.#servers.get(path)
    if (server && check && server.check.port === check.port) {
      server.check = check
      return server
    }
    if (server) this.#options.log.detail(2, 'Closing health check', { service: path, port: server.check.port })
    this.#servers.delete(path)
    this.#reported.delete(path)
    if (!check) return undefined
    this.#options.log.detail(2, 'Opening health check', { service: path, port: check.port })
    const successor = new HealthCheckServer(check, this.#options.health)
    this.#servers.set(path, successor)
    return successor
  }

  async #openAndClose(
    closing: readonly HealthCheckServer[],
    hosts: Readonly<Record<Family, readonly string[]>>,
  ): Promise<void> {
    // A port may go from one service to another.
    await Promise.all(closing.map((server) => server.close()))
    const before = this.#hosts
    this.#hosts = JSON.stringify(hosts)
    // A new address of the machine concerns every server; else the others are as they should be.
    for (const path of before === this.#hosts ? [...this.#due] : [...this.#servers.keys()]) {
      if (this.#closed) return
      this.#due.delete(path)
      const server = this.#servers.get(path)
      if (!server) continue
      const own = server.check.families.flatMap((family) => hosts[family])
      try {
        await server.listen(own)
        if (own.length > 0) this.#reported.delete(path)
        else this.#reportNowhere(path)
      } catch (error) {
        this.#due.add(path)
        this.#reportFailure(path, server.check, error)
      }
    }
  }

  /** Whether this is news. */
  #isNew(path: string, reason: string): boolean {
    const isNew = this.#reported.get(path) !== reason
    this.#reported.set(path, reason)
    return isNew
  }

  #reportNowhere(path: string): void {
    const message = 'No address of this node is in nodePortAddresses: the health check is served nowhere'
    if (this.#isNew(path, message)) this.#options.log.warn(message, { service: path })
  }

  #reportFailure(path: string, { namespace, name, port }: HealthCheck, error: unknown): void {
    const { log, nodeName, onEvent } = this.#options
    const fields = { service: path, port, error: messageOf(error) }
    if (!this.#isNew(path, messageOf(error))) {
      log.detail(2, 'The health check still cannot be opened', fields)
      return
    }
    log.error('Failed to start healthcheck. It is tried again at the next sync', fields)
    const note = `node ${nodeName} failed to start healthcheck "${path}" on port ${port}: ${messageOf(error)}`
    onEvent?.({ reason: 'FailedToStartServiceHealthcheck', action: 'Listen', namespace, name, note })
  }
}
