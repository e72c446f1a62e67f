import { type Family, families } from '@kpng/api'
import { type DualAddress, familySuffix, type Host } from '../addresses.js'
import type { Case, Cell, Destination, Expectation, Reached, Step } from './case.js'

/** A destination in both families. */
type DualDestination = Readonly<{ protocol: Destination['protocol']; address: DualAddress; port: number }>

export const tcp = (address: DualAddress, port: number): DualDestination => ({ protocol: 'TCP', address, port })
export const udp = (address: DualAddress, port: number): DualDestination => ({ protocol: 'UDP', address, port })
export const sctp = (address: DualAddress, port: number): DualDestination => ({ protocol: 'SCTP', address, port })

const reachedFrom =
  (source: Reached['source']) =>
  (servers: readonly string[], more: Pick<Reached, 'hits'> = {}): Reached => ({
    outcome: 'reached',
    servers,
    source,
    ...more,
  })

/** The client's own address arrives at the server. */
export const keepsSource = reachedFrom('kept')
/** The server sees the node that runs the proxy. */
export const masqueraded = reachedFrom('node')
export const reaches = reachedFrom('any')
export const refused = { outcome: 'refused' } as const
export const dropped = { outcome: 'dropped' } as const
export const passed = { outcome: 'passed' } as const
export const unserved = { outcome: 'unserved' } as const

/** A line of the truth table: a cell in each family. */
export type CellSpec = readonly [
  id: string,
  client: Host,
  to: DualDestination,
  expect: Expectation,
  checklist: readonly number[],
  more?: Pick<Cell, 'flow' | 'tries' | 'bytes' | 'spacing' | 'throughout'>,
]

/** The cells of some lines: ids and flows end in the family. */
export function inFamilies(table: readonly CellSpec[], served: readonly Family[] = families): Cell[] {
  return table.flatMap(([id, client, { protocol, address, port }, expect, rows, { flow, ...more } = {}]) =>
    served.map((family) => ({
      id: `${id}.${familySuffix[family]}`,
      client,
      to: { protocol, family, ip: address[family], port },
      expect,
      rows,
      ...more,
      ...(flow !== undefined && { flow: `${flow}.${familySuffix[family]}` }),
    })),
  )
}

type OneStep = Omit<Case, 'steps'> &
  Omit<Step, 'after' | 'cells'> & {
    readonly cells: readonly CellSpec[]
  }

/** A case in which nothing changes. */
export const oneStep = ({ objects, cells, actions, settleMs, ...one }: OneStep): Case => ({
  ...one,
  steps: [
    {
      ...{ after: 'start', objects, cells: inFamilies(cells) },
      ...(actions && { actions }),
      ...(settleMs !== undefined && { settleMs }),
    },
  ],
})
