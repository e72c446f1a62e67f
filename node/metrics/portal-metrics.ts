import { Gauge, type Registry } from 'prom-client'

/** How many portals of the userspace backend are not open though they should be, read when somebody scrapes. */
export function registerFailedPortals(registry: Registry, failed: () => number): void {
  new Gauge({
    name: 'kpng_userspace_portals_failed',
    help: 'Addresses of services that could not be opened; the log says which, and why',
    registers: [registry],
    collect() {
      this.set(failed())
    },
  })
}
