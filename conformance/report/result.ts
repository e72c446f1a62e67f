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
  /** How often it was measured until it was right: more than once when a proxy programs bit by bit. */
  readonly attempts: number
}
