import { type Log, messageOf } from '@kpng/api'
import type { Changes, NodeView } from '@kpng/client'
import { interfaceAddresses } from '@kpng/linux'
import type { HealthCheckEvent } from './health-check-event.js'
import { HealthCheckServer } from './health-check-server.js'
import { type HealthCheck, healthCheckOf } from './local-endpoints.js'
import { type ListenAddress, listenAddresses } from './node-port-listen.js'

export interface HealthCheckNodePortsOptions {
  /** Whether the proxy itself is healthy: `ProxyHealth`. */
  readonly health: { readonly healthy: boolean }
  readonly nodeName: string
  readonly log: Log
  /** CIDRs and keywords as in kube-proxy's `nodePortAddresses`. Default: every address. */
  readonly nodePortAddresses?: readonly string[]
  /** The node's primary address where it is known otherwise than from the Node object: kube-proxy's `bindAddress`. */
  readonly nodeIps?: readonly string[]
  /** Told when a port cannot be opened, once until it can. */
  readonly onEvent?: (event: HealthCheckEvent) => void
  /** What the machine's interfaces have. Default: asks the system. */
  readonly interfaceAddresses?: () => readonly string[]
}

/**
 * Opens a port for each Service with externalTrafficPolicy Local that has a healthCheckNodePort, so that load balancers find the nodes
 * with endpoints. Costs what changed: a Service that did not is not looked at. A port that cannot be opened is tried again at
 * each sync.
 */
export class HealthCheckNodePorts {
  readonly #options: HealthCheckNodePortsOptions
  readonly #servers = new Map<string, HealthCheckServer>()
  readonly #failed = new Map<string, HealthCheck>()
  readonly #told = new Set<string>()
  #started = false
  #closed = false
  #work: Promise<void> = Promise.resolve()

  constructor(options: HealthCheckNodePortsOptions) {
    this.#options = options
  }

  /** How many are open, or being opened. */
  get size(): number {
    return this.#servers.size
  }

  /** To be called after each sync that succeeded. Resolves when the ports are as they should be, or could not be. */
  observe(view: NodeView, changes: Changes): Promise<void> {
    const wanted = new Map<string, HealthCheck | undefined>(this.#failed)
    if (this.#started) {
      for (const [path, { after }] of changes.services) wanted.set(path, after && healthCheckOf(after))
    } else for (const [path, service] of view.services) wanted.set(path, healthCheckOf(service))
    this.#started = true
    const nodeIps = [...(this.#options.nodeIps ?? []), ...(view.node?.addresses ?? [])]
    const opening = new Map<string, HealthCheckServer>()
    const closing: HealthCheckServer[] = []
    for (const [path, check] of wanted) this.#sort(path, check, opening, closing)
    if (opening.size === 0 && closing.length === 0) return this.#work
    this.#work = this.#work.then(async () => {
      // A port may go from one service to another.
      await Promise.all(closing.map((server) => server.close()))
      for (const [path, server] of opening) await this.#open(path, server, nodeIps)
    })
    return this.#work
  }

  /** Closes everything. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#work
    await Promise.all([...this.#servers.values()].map((server) => server.close()))
    this.#servers.clear()
  }

  #sort(
    path: string,
    check: HealthCheck | undefined,
    opening: Map<string, HealthCheckServer>,
    closing: HealthCheckServer[],
  ): void {
    const server = this.#servers.get(path)
    if (server && check && server.canServe(check)) {
      server.update(check)
      return
    }
    this.#failed.delete(path)
    if (server) {
      this.#servers.delete(path)
      closing.push(server)
      this.#options.log.detail(2, 'Closing health check', { service: path, port: server.check.port })
    }
    if (!check) {
      this.#told.delete(path)
      return
    }
    const successor = new HealthCheckServer(check, this.#options.health)
    this.#servers.set(path, successor)
    opening.set(path, successor)
  }

  async #open(path: string, server: HealthCheckServer, nodeIps: readonly string[]): Promise<void> {
    if (this.#closed) return
    try {
      await server.open(this.#addresses(server.check, nodeIps))
      this.#told.delete(path)
      this.#options.log.detail(2, 'Opened health check', { service: path, port: server.check.port })
    } catch (error) {
      // The next sync may have put another in its place meanwhile.
      if (this.#servers.get(path) !== server) return
      this.#servers.delete(path)
      this.#failed.set(path, server.check)
      this.#tell(path, server.check, error)
    }
  }

  #addresses(check: HealthCheck, nodeIps: readonly string[]): ListenAddress[] {
    const { nodePortAddresses = ['all'], interfaceAddresses = addressesOfInterfaces, log } = this.#options
    const all = listenAddresses({ nodePortAddresses, nodeIps, interfaceAddresses: interfaceAddresses() })
    const addresses = all.filter(({ family }) => check.families.includes(family))
    if (addresses.length === 0) {
      const service = `${check.namespace}/${check.name}`
      log.warn('No address of this node is in nodePortAddresses: the health check is served nowhere', { service })
    }
    return addresses
  }

  #tell(path: string, { namespace, name, port }: HealthCheck, error: unknown): void {
    const { log, nodeName, onEvent } = this.#options
    const fields = { service: path, port, error: messageOf(error) }
    if (this.#told.has(path)) {
      log.detail(2, 'The health check still cannot be opened', fields)
      return
    }
    this.#told.add(path)
    log.error('Failed to start healthcheck. It is tried again at the next sync', fields)
    const note = `node ${nodeName} failed to start healthcheck "${path}" on port ${port}: ${messageOf(error)}`
    onEvent?.({ reason: 'FailedToStartServiceHealthcheck', action: 'Listen', namespace, name, note })
  }
}

const addressesOfInterfaces = (): string[] => interfaceAddresses().map(({ ip }) => ip)
