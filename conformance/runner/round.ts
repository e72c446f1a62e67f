import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome } from '@kpng/linux/testing'
import type { Deviations } from '../deviations/deviation.js'
import { isRight } from '../evaluation/evaluate.js'
import { inTurns } from '../in-turns.js'
import type { Lab } from '../lab/lab.js'
import type { CellResult } from '../report/report.js'
import { judge } from './judge.js'
import { isSilence, measure } from './measure.js'
import type { Pace } from './pace.js'
import type { PlacedCell } from './rounds.js'

/** So many cells at a time. More would not be faster, but a proxy that is a process would answer late. */
const cellsAtATime = 12
/** Between two measurements of a cell that was wrong. */
const againMs = 250
/** A cell is wrong only if it was so often, however long each measurement took. */
const leastAttempts = 3
/** How long a run waits for cells that stay wrong, as a multiple of the time to settle. */
const roundsOfPatience = 4

export interface Measuring {
  readonly lab: Lab
  readonly pace: Pace
  readonly deviations: Deviations
  /** How long a wrong cell may still become right, in milliseconds. 0: it is measured once. */
  readonly settleMs: number
  readonly patience: Patience
  /** Goes before the names of flows, so that nobody uses the sockets of an earlier time. */
  readonly flowPrefix: string
  /** What requests showed that were made before the round was measured, by the id of their cell. */
  readonly before: ReadonlyMap<string, readonly Outcome[]>
}

/** How long a run may wait, in all, for cells that stay wrong. Without a limit, a wrong proxy would take minutes. */
export class Patience {
  #leftMs: number

  constructor(settleMs: number) {
    this.#leftMs = roundsOfPatience * settleMs
  }

  get isOver(): boolean {
    return this.#leftMs <= 0
  }

  /** Cells were waited for in vain. */
  spend(ms: number): void {
    this.#leftMs -= ms
  }
}

export interface Measured {
  readonly results: CellResult[]
  /** Cells of which some tries were wrong beside others that were right: the rules were there, and did not always hold. */
  readonly doubtful: ReadonlySet<string>
}

/**
 * Measures the cells of a round. A proxy may program bit by bit, so a cell that is wrong is measured again until it is right or `settleMs`
 * have passed. What became right that way must be right once more; if it is not, it is unstable.
 */
export async function measureRound(cells: readonly PlacedCell[], measuring: Measuring): Promise<Measured> {
  // Spaced cells take seconds and hardly load anything: they go on beside the others.
  const isSpaced = ({ cell }: PlacedCell) => cell.spacing !== undefined
  const doubtful = new Set<string>()
  const slow = measureUntilRight(cells.filter(isSpaced), measuring, doubtful)
  // It is awaited last; when the others fail first, its own failure has nobody to go to.
  slow.catch(() => {})
  const others = await measureUntilRight(
    cells.filter((placed) => !isSpaced(placed)),
    measuring,
    doubtful,
  )
  const results = new Map([...others, ...(await slow)])
  return { results: cells.map(({ id }) => results.get(id) as CellResult), doubtful }
}

async function measureUntilRight(
  cells: readonly PlacedCell[],
  { lab, pace, deviations, settleMs, patience, flowPrefix, before }: Measuring,
  doubtful: Set<string>,
): Promise<Map<string, CellResult>> {
  const results = new Map<string, CellResult>()
  const isWrong = ({ id }: PlacedCell) => results.get(id)?.status === 'wrong'
  /** Resolves with the cells that are wrong, and not only because nothing came back. */
  const run = async (some: readonly PlacedCell[], attempt: number): Promise<PlacedCell[]> => {
    const proven = new Set<PlacedCell>()
    const measured = await inTurns(
      some.map((placed) => async () => {
        const outcomes = await measure(lab, pace, placed.cell, `${flowPrefix}${placed.case.id}/`)
        const { expect, client } = placed.cell
        const bad = outcomes.filter((outcome) => !isRight(expect, client, outcome))
        if (bad.length > 0 && bad.length < outcomes.length) doubtful.add(placed.id)
        if (bad.some((outcome) => !isSilence(outcome))) proven.add(placed)
        return judge(placed, [...(before.get(placed.id) ?? []), ...outcomes], deviations, attempt)
      }),
      cellsAtATime,
    )
    for (const result of measured) results.set(result.id, result)
    return some.filter((placed) => isWrong(placed) && proven.has(placed))
  }

  await run(cells, 1)
  if (settleMs === 0) return results
  const start = performance.now()
  const elapsedMs = () => performance.now() - start
  const mayGoOn = (attempt: number) =>
    attempt <= leastAttempts || (!patience.isOver && elapsedMs() < pace.scaled(settleMs))
  let waiting = cells.filter(isWrong)
  for (let attempt = 2; waiting.length > 0 && mayGoOn(attempt); attempt++) {
    await sleep(againMs)
    await run(waiting, attempt)
    const became = waiting.filter((placed) => !isWrong(placed))
    const rightAfterMs = Math.round(elapsedMs())
    const wrongAgain = await run(became, attempt)
    for (const placed of became) {
      const { id } = placed
      const result = results.get(id) as CellResult
      if (wrongAgain.includes(placed))
        results.set(id, { ...result, status: 'unstable', got: `right at try ${attempt}, then ${result.got}` })
      else if (!isWrong(placed)) results.set(id, { ...result, rightAfterMs })
    }
    waiting = waiting.filter(isWrong)
  }
  if (waiting.length > 0) patience.spend(elapsedMs())
  return results
}
