import type { Family } from '@kpng/api'
import type { Expectation } from '../cases/case.js'

/** What became of one cell. */
export interface CellResult {
  /** `case/cell`, or `case/step/cell`. */
  readonly id: string
  readonly case: string
  readonly title: string
  /** From 1. */
  readonly step: number
  readonly steps: number
  readonly after: string
  readonly cell: string
  readonly client: string
  readonly to: string
  readonly expect: Expectation
  readonly expected: string
  readonly got: string
  readonly rows: readonly number[]
  readonly status:
    | 'right'
    | 'wrong'
    /** It was right, and later some connections were not. */
    | 'unstable'
    /** Not as kube-proxy, but as the backend's named deviation says. */
    | 'deviates'
    /** As kube-proxy, though a deviation was named: the name should go. */
    | 'unexpectedly-right'
    | 'skipped'
  /** Why it deviates or was skipped. */
  readonly reason?: string
  /** Where more is written about the reason. */
  readonly link?: string
  /** How often it was measured until it was right: more than once when a proxy programs bit by bit. */
  readonly attempts: number
  /** If that was more than once: how long it took from the first time on, in milliseconds. */
  readonly rightAfterMs?: number
}

/** What the address of a Service is. */
export type AddressKind = 'clusterIP' | 'externalIP' | 'loadBalancerIP' | 'nodePort'

/** Connections that were made, each of them once, when the cells were already right. */
export interface Stability {
  readonly kind: AddressKind
  readonly protocol: string
  readonly family: Family
  readonly connections: number
  /** How many of them were not right. */
  readonly failed: number
}

export type Summary = Readonly<Record<CellResult['status'], number>> & { readonly cells: number }

export interface ConformanceReport {
  readonly proxy: readonly string[]
  readonly backend: string | undefined
  readonly results: readonly CellResult[]
  readonly summary: Summary
  readonly stability: readonly Stability[]
  /** Things people should know that no cell says: the proxy ended, a case was skipped. */
  readonly notes: readonly string[]
  readonly durationMs: number
  /** No cell is wrong or unstable, some are right, and the proxy was there to the end. */
  readonly passed: boolean
}

/** It makes the run fail. */
export const isFailure = ({ status }: Pick<CellResult, 'status'>): boolean =>
  status === 'wrong' || status === 'unstable'

export function summaryOf(results: readonly CellResult[]): Summary {
  const count = (status: CellResult['status']) => results.filter((result) => result.status === status).length
  return {
    cells: results.length,
    right: count('right'),
    wrong: count('wrong'),
    unstable: count('unstable'),
    deviates: count('deviates'),
    'unexpectedly-right': count('unexpectedly-right'),
    skipped: count('skipped'),
  }
}

export function summaryText(summary: Summary): string {
  const parts = [
    `${summary.right} right`,
    ...(summary.deviates > 0 ? [`${summary.deviates} deviate (named)`] : []),
    ...(summary['unexpectedly-right'] > 0
      ? [`${summary['unexpectedly-right']} right in spite of a named deviation`]
      : []),
    ...(summary.skipped > 0 ? [`${summary.skipped} skipped`] : []),
    ...(summary.unstable > 0 ? [`${summary.unstable} unstable`] : []),
    `${summary.wrong} wrong`,
  ]
  return `${summary.cells} cells: ${parts.join(', ')}`
}

/** The cells of each case. */
export function byCase(results: readonly CellResult[]): Map<string, CellResult[]> {
  const groups = new Map<string, CellResult[]>()
  for (const result of results) {
    const group = groups.get(result.case)
    if (group) group.push(result)
    else groups.set(result.case, [result])
  }
  return groups
}
