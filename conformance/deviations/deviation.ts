import type { Expectation, Reached } from '../cases/case.js'
import { matchesAny } from '../evaluation/glob.js'

/** Cells that a data plane is known, and allowed, to answer otherwise. */
export interface Deviation {
  /** Patterns of cell ids (`case/cell`, `case/step/cell`), where `*` stands for anything. */
  readonly cells: readonly string[]
  /** Patterns of those among them that do not deviate. */
  readonly except?: readonly string[]
  /** Only those of them that expect this. */
  readonly expecting?: Partial<Pick<Reached, 'source'>>
  /** Only connections that are made while the Service changes may show this. Default: only those before and afterwards. */
  readonly whileChanging?: true
  /** Why, as a sentence for people. */
  readonly reason: string
  /** Where more is written about it: the address of a page, or a section of kpng's own documents such as `docs/userspace.md#limits`. */
  readonly link: string
  /** What is seen instead; anything else is a failure. Without an outcome: what differs in the cell's own `reached`. */
  readonly instead: Expectation | Partial<Omit<Reached, 'outcome'>>
}

export type Deviations = readonly Deviation[]

/** Cells of other ports of cluster IPs. */
export const otherPortCells = [
  'cluster-ip-other-port/*',
  'node-port/on-cluster-ip.*',
  'port-changed/1/second-port.*',
  'port-changed/2/first-port.*',
  'slice-port-of-another-protocol/pod-a-udp.*',
  'sctp/other-port.*',
]

/** Cells of cluster IPs that no Service has. */
export const unallocatedCells = [
  'unallocated-cluster-ip/*',
  'single-stack-v4/pod-a.v6',
  'single-stack-v6/pod-a.v4',
  'service-gone/2/cluster-ip.*',
]

/** What the connections of a cell may show besides while its Service changes. */
export const allowedWhileChanging = (deviations: Deviations, cellId: string, expect: Expectation): Expectation[] =>
  deviations
    .filter(({ cells, whileChanging }) => whileChanging && matchesAny(cells, cellId))
    .map((deviation) => deviated(expect, deviation))

/** The first deviation that names a cell. */
export const deviationOf = (deviations: Deviations, cellId: string, expect: Expectation): Deviation | undefined =>
  deviations.find(({ cells, except = [], expecting, whileChanging }) => {
    if (whileChanging) return false
    const source = expect.outcome === 'reached' ? expect.source : undefined
    if (expecting?.source !== undefined && expecting.source !== source) return false
    return matchesAny(cells, cellId) && !matchesAny(except, cellId)
  })

/** What a cell with a named deviation may show instead. */
export function deviated(expect: Expectation, { instead }: Deviation): Expectation {
  if ('outcome' in instead) return instead
  return expect.outcome === 'reached' ? { ...expect, ...instead } : expect
}
