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
}

export type Summary = Readonly<Record<CellResult['status'], number>> & { readonly cells: number }

export interface ConformanceReport {
  readonly proxy: readonly string[]
  readonly backend: string | undefined
  readonly results: readonly CellResult[]
  readonly summary: Summary
  /** Things people should know that no cell says: the proxy ended, a case was skipped. */
  readonly notes: readonly string[]
  readonly durationMs: number
  /** No cell is wrong, some are right, and the proxy was there to the end. */
  readonly passed: boolean
}

export function summaryOf(results: readonly CellResult[]): Summary {
  const count = (status: CellResult['status']) => results.filter((result) => result.status === status).length
  return {
    cells: results.length,
    right: count('right'),
    wrong: count('wrong'),
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
