import type { CellResult } from './result.js'

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
