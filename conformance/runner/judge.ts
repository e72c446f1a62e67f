import type { Outcome } from '@kpng/linux/testing'
import { type Deviations, deviated, deviationOf } from '../deviations/deviation.js'
import { evaluate, expectationText } from '../evaluation/evaluate.js'
import type { CellResult } from '../report/report.js'
import type { PlacedCell } from './rounds.js'

/** The result of a cell from what its tries showed. */
export function judge(
  placed: PlacedCell,
  outcomes: readonly Outcome[],
  deviations: Deviations,
  attempts: number,
): CellResult {
  const { cell } = placed
  const { right, got } = evaluate(cell.expect, cell.client, outcomes)
  const deviation = deviationOf(deviations, placed.id, cell.expect)
  const result = { ...describe(placed), got, attempts }
  if (!deviation) return { ...result, status: right ? 'right' : 'wrong' }
  const { reason, link } = deviation
  const why = { reason, link }
  if (right) return { ...result, status: 'unexpectedly-right', ...why }
  const asNamed = evaluate(deviated(cell.expect, deviation), cell.client, outcomes).right
  return { ...result, status: asNamed ? 'deviates' : 'wrong', ...(asNamed && why) }
}

export const skip = (placed: PlacedCell, reason: string): CellResult => ({
  ...describe(placed),
  got: '',
  attempts: 0,
  status: 'skipped',
  reason,
})

/** The proxy was not there any more. */
export const wrongUnasked = (placed: PlacedCell): CellResult => ({
  ...describe(placed),
  got: 'nothing: the proxy had ended',
  attempts: 0,
  status: 'wrong',
})

function describe(placed: PlacedCell): Omit<CellResult, 'got' | 'status' | 'attempts'> {
  const { id, case: one, step, cell } = placed
  const { ip, port, protocol } = cell.to
  return {
    id,
    case: one.id,
    title: one.title,
    step: step + 1,
    steps: one.steps.length,
    after: one.steps[step]?.after ?? '',
    cell: cell.id,
    client: cell.client,
    to: `${ip.includes(':') ? `[${ip}]` : ip}:${port}/${protocol}`,
    expect: cell.expect,
    expected: expectationText(cell.expect),
    rows: cell.rows,
  }
}

/** The order of the table: by case, then by step, as the cases have them. */
export function inOrder(results: readonly CellResult[], cases: readonly { readonly id: string }[]): CellResult[] {
  const place = new Map(cases.map(({ id }, index) => [id, index]))
  return [...results].sort((a, b) => (place.get(a.case) ?? 0) - (place.get(b.case) ?? 0) || a.step - b.step)
}
