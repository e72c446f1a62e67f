import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome } from '@kpng/linux/testing'
import type { Deviations } from '../deviations/deviation.js'
import { inTurns } from '../in-turns.js'
import type { Lab } from '../lab/lab.js'
import type { CellResult } from '../report/report.js'
import { judge } from './judge.js'
import { measure } from './measure.js'
import type { Pace } from './pace.js'
import type { PlacedCell } from './rounds.js'

/** So many cells at a time. More would not be faster, but a proxy that is a process would answer late. */
const cellsAtATime = 12
/** Between two measurements of a cell that was wrong. */
const againMs = 250
/** A cell is wrong only if it was so often, however long each measurement took. */
const leastAttempts = 3

export interface Measuring {
  readonly lab: Lab
  readonly pace: Pace
  readonly deviations: Deviations
  /** How long a wrong cell may still become right, in milliseconds. 0: it is measured once. */
  readonly settleMs: number
  /** Goes before the names of flows, so that nobody uses the sockets of an earlier time. */
  readonly flowPrefix: string
  /** What requests showed that were made before the round was measured, by the id of their cell. */
  readonly before: ReadonlyMap<string, readonly Outcome[]>
}

/**
 * Measures the cells of a round. A proxy may program bit by bit, so a cell that is wrong is measured again until `settleMs` have
 * passed; what becomes right that way must be right twice.
 */
export async function measureRound(cells: readonly PlacedCell[], measuring: Measuring): Promise<CellResult[]> {
  // Spaced cells take seconds and hardly load anything: they go on beside the others.
  const isSpaced = ({ cell }: PlacedCell) => cell.spacing !== undefined
  const slow = measureUntilRight(cells.filter(isSpaced), measuring)
  // It is awaited last; when the others fail first, its own failure has nobody to go to.
  slow.catch(() => {})
  const others = await measureUntilRight(
    cells.filter((placed) => !isSpaced(placed)),
    measuring,
  )
  const results = new Map([...others, ...(await slow)])
  return cells.map(({ id }) => results.get(id) as CellResult)
}

async function measureUntilRight(
  cells: readonly PlacedCell[],
  { lab, pace, deviations, settleMs, flowPrefix, before: earlier }: Measuring,
): Promise<Map<string, CellResult>> {
  const results = new Map<string, CellResult>()
  const run = async (some: readonly PlacedCell[], attempt: number) => {
    const measured = await inTurns(
      some.map((placed) => async () => {
        const outcomes = await measure(lab, pace, placed.cell, `${flowPrefix}${placed.case.id}/`)
        return judge(placed, [...(earlier.get(placed.id) ?? []), ...outcomes], deviations, attempt)
      }),
      cellsAtATime,
    )
    for (const result of measured) results.set(result.id, result)
  }
  const wrong = () => cells.filter(({ id }) => results.get(id)?.status === 'wrong')

  await run(cells, 1)
  if (settleMs === 0) return results
  const start = performance.now()
  const mayGoOn = (attempt: number) => attempt <= leastAttempts || performance.now() - start < pace.scaled(settleMs)
  for (let attempt = 2; wrong().length > 0 && mayGoOn(attempt); attempt++) {
    await sleep(againMs)
    const before = wrong()
    await run(before, attempt)
    await run(
      before.filter(({ id }) => results.get(id)?.status !== 'wrong'),
      attempt,
    )
  }
  return results
}
