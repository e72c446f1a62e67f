import type { ServicePortConnections } from '@kpng/client'
import { Counter, type Registry } from 'prom-client'

/** A metric by service port, read from the kernel when somebody scrapes. */
export function registerConnections(registry: Registry, read: () => Promise<readonly ServicePortConnections[]>): void {
  new Counter({
    name: 'kpng_nft_connections_total',
    help: 'New connections and UDP flows to a service port, also those that found no endpoint',
    labelNames: ['namespace', 'service', 'port'],
    registers: [registry],
    async collect() {
      const all = await read()
      this.reset()
      for (const { connections, ...labels } of all) this.inc(labels, connections)
    },
  })
}
