import { setTimeout as sleep } from 'node:timers/promises'
import type { Deviations } from '../deviations/deviation.js'
import { inTurns } from '../in-turns.js'
import type { Lab } from '../lab/lab.js'
import type { CellResult } from '../report/result.js'
import { judge } from './judge.js'
import { measure } from './measure.js'
import type { PlacedCell } from './rounds.js'

/** So many cells at a time; most of them wait for a time-out rather than for the machine. */
const cellsAtATime = 24
/** Between two measurements of a cell that was wrong. */
const againMs = 250

/**
 * Measures the cells of a round. A proxy may program bit by bit, so a cell that is wrong is measured again until `settleMs` have
 * passed; what becomes right that way must be right twice.
 */
export async function measureRound(
  lab: Lab,
  cells: readonly PlacedCell[],
  deviations: Deviations,
  settleMs: number,
): Promise<CellResult[]> {
  const results = new Map<string, CellResult>()
  const run = async (some: readonly PlacedCell[], attempt: number) => {
    const measured = await inTurns(
      some.map((placed) => async () => {
        const outcomes = await measure(lab, placed.cell, `${placed.case.id}/`)
        return judge(placed, outcomes, deviations, attempt)
      }),
      cellsAtATime,
    )
    for (const result of measured) results.set(result.id, result)
  }
  const wrong = (some: readonly PlacedCell[]) =>
    some.filter(({ id, cell }) => results.get(id)?.status === 'wrong' && cell.spacingMs === undefined)

  // Spaced cells take seconds and hardly load anything: they go on beside the others.
  const spaced = cells.filter(({ cell }) => cell.spacingMs !== undefined)
  const others = cells.filter(({ cell }) => cell.spacingMs === undefined)
  const slow = run(spaced, 1)
  // It is awaited last; when the others fail first, its own failure has nobody to go to.
  slow.catch(() => {})
  await run(others, 1)
  const start = performance.now()
  for (let attempt = 2; wrong(others).length > 0 && performance.now() - start < settleMs; attempt++) {
    await sleep(againMs)
    const before = wrong(others)
    await run(before, attempt)
    await run(
      before.filter(({ id }) => results.get(id)?.status !== 'wrong'),
      attempt,
    )
  }
  await slow
  return cells.map(({ id }) => results.get(id) as CellResult)
}
