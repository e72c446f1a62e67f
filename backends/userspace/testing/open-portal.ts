import type { NodeAddresses, OpenPortal, Place, Steering } from '../capture/capture.js'
import type { Fate, Portal } from '../portal.js'

const audience = (fate: Fate): Portal['inside'] => ({
  endpoints: fate === 'forward' ? [{ ip: '10.244.1.2', port: 8080, isLocal: true }] : [],
  otherwise: fate === 'drop' ? 'drop' : 'refuse',
})

/** By what becomes of clients: `fates` of those inside and outside. */
export type PortalInit = Partial<Omit<Portal, 'inside' | 'outside'>> & { readonly fates?: readonly [Fate, Fate] }

/** A cluster IP on TCP port 80 with an endpoint, unless something else is said. */
export function openPortal(
  { fates = ['forward', 'forward'], ...init }: PortalInit = {},
  place: Partial<Place> = {},
): OpenPortal {
  const portal: Portal = {
    id: '10.96.0.1:80/tcp',
    service: 'default/web',
    portName: 'http',
    kind: 'clusterIP',
    family: 'IPv4',
    protocol: 'tcp',
    address: '10.96.0.1',
    port: 80,
    inside: audience(fates[0]),
    outside: audience(fates[1]),
    draining: [],
    allowedSources: undefined,
    sessionAffinitySeconds: undefined,
    masquerade: 'notPods',
    ...init,
  }
  return { portal, place: { ip: '0.0.0.0', port: 40_000, ...place } }
}

export const nodeAddresses = (init: Partial<NodeAddresses> = {}): NodeAddresses => ({
  insideCidrs: [],
  nodeIps: { IPv4: undefined, IPv6: undefined },
  nodePortCidrs: { IPv4: ['0.0.0.0/0'], IPv6: ['::/0'] },
  nodePortHosts: { IPv4: ['0.0.0.0'], IPv6: ['::'] },
  nodePortIps: { IPv4: [], IPv6: [] },
  ...init,
})

export const steeringOf = (init: Partial<Steering>): Steering => ({
  extent: 'changes',
  open: [],
  added: [],
  removed: [],
  node: nodeAddresses(),
  ...init,
})
