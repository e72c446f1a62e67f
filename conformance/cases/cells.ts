import { type Family, families } from '@kpng/api'
import { type DualAddress, familySuffix } from '../addresses.js'
import type { Cell, Destination, Reached } from './case.js'

/** A destination in both families. */
export type DualDestination = Readonly<{ protocol: Destination['protocol']; address: DualAddress; port: number }>

export const tcp = (address: DualAddress, port: number): DualDestination => ({ protocol: 'TCP', address, port })
export const udp = (address: DualAddress, port: number): DualDestination => ({ protocol: 'UDP', address, port })
export const sctp = (address: DualAddress, port: number): DualDestination => ({ protocol: 'SCTP', address, port })

type Hits = Pick<Reached, 'hits'>

/** The client's own address arrives at the server. */
export const keepsSource = (servers: readonly string[], more: Hits = {}): Reached => ({
  outcome: 'reached',
  servers,
  source: 'kept',
  ...more,
})
/** The server sees the node that runs the proxy. */
export const masqueraded = (servers: readonly string[], more: Hits = {}): Reached => ({
  outcome: 'reached',
  servers,
  source: 'node',
  ...more,
})
export const reaches = (servers: readonly string[], more: Hits = {}): Reached => ({
  outcome: 'reached',
  servers,
  source: 'any',
  ...more,
})
export const refused = { outcome: 'refused' } as const
export const dropped = { outcome: 'dropped' } as const
export const passed = { outcome: 'passed' } as const
export const unserved = { outcome: 'unserved' } as const

export type CellSpec = Omit<Cell, 'to' | 'id'> & { readonly id: string; readonly to: DualDestination }

/** The cells in each family: ids end in it. */
export function inFamilies(specs: readonly CellSpec[], served: readonly Family[] = families): Cell[] {
  return specs.flatMap(({ id, to, flow, ...cell }) =>
    served.map((family) => ({
      ...cell,
      id: `${id}.${familySuffix[family]}`,
      to: { protocol: to.protocol, family, ip: to.address[family], port: to.port },
      ...(flow !== undefined && { flow: `${flow}.${familySuffix[family]}` }),
    })),
  )
}
