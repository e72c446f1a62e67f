import {
  type Backend,
  type Changes,
  changeSetsOverGrpc,
  endpointsOfPort,
  type NodeView,
  optionsFromArguments,
  protocolOf,
  runBackend,
  type ServiceEndpoints,
  stopOnSignals,
} from '@kpng/client'

// A proxier of your own, for the Services that carry the label service.kubernetes.io/service-proxy-name: own-proxy, beside the
// cluster's kube-proxy, which leaves them alone. This one keeps a table "address → endpoints" and prints what changes in it;
// put your data plane in the place of the table.

class OwnProxy implements Backend {
  readonly #routes = new Map<string, string>()

  async setup(): Promise<void> {}

  async sync(view: NodeView, changes: Changes): Promise<void> {
    if (changes.full) {
      // Nothing is known of the data plane: make it match the whole view.
      const wanted = new Map([...view.services.values()].flatMap((item) => [...routesOf(item)]))
      for (const route of this.#routes.keys()) if (!wanted.has(route)) this.#remove(route)
      for (const [route, endpoints] of wanted) this.#set(route, endpoints)
      return
    }
    for (const { before, after } of changes.services.values()) {
      const wanted = new Map(after ? routesOf(after) : [])
      for (const [route] of before ? routesOf(before) : []) if (!wanted.has(route)) this.#remove(route)
      for (const [route, endpoints] of wanted) this.#set(route, endpoints)
    }
  }

  async cleanup(): Promise<void> {
    for (const route of this.#routes.keys()) this.#remove(route)
  }

  async close(): Promise<void> {}

  #set(route: string, endpoints: string): void {
    if (this.#routes.get(route) === endpoints) return
    this.#routes.set(route, endpoints)
    console.log(`+ ${route} → ${endpoints || 'refuse'}`)
  }

  #remove(route: string): void {
    this.#routes.delete(route)
    console.log(`- ${route}`)
  }
}

/** `address:port/protocol` → the endpoints behind it, for traffic from outside. */
function* routesOf(item: ServiceEndpoints): Generator<[string, string]> {
  const { externalIps, loadBalancerIps } = item.service.ips ?? {}
  for (const address of [...(externalIps?.v4 ?? []), ...(loadBalancerIps?.v4 ?? [])]) {
    for (const port of item.service.ports) {
      const endpoints = endpointsOfPort(item, port)
        .filter(({ scopes }) => scopes.external)
        .flatMap(({ endpoint, port }) => (endpoint.ips?.v4 ?? []).map((ip) => `${ip}:${port}`))
      yield [`${address}:${port.port}/${protocolOf(port)}`, endpoints.join(', ')]
    }
  }
}

const options = optionsFromArguments()
const { log, nodeName } = options
await runBackend(new OwnProxy(), { changeSets: changeSetsOverGrpc(options), nodeName, log, signal: stopOnSignals(log) })
