import type { Family } from '@kpng/api'
import { type Case, type Cell, cellId, type KubernetesObject } from '../cases/case.js'
import { matchesAny } from '../evaluation/glob.js'

/** A cell with its place in the cases. */
export interface PlacedCell {
  readonly id: string
  readonly case: Case
  readonly step: number
  readonly cell: Cell
}

/** One feed of objects, and the cells that are measured while it stands. */
export interface Round {
  readonly objects: readonly KubernetesObject[]
  readonly cells: readonly PlacedCell[]
}

/**
 * All cases go side by side: the first round has the first step of each, the second round the second, and so on; a case that has
 * ended keeps its last objects. So a run has as many feeds as the longest case has steps, not as there are steps in all. Cases
 * that want to be alone come in rounds of their own.
 */
export function roundsOf(cases: readonly Case[]): Round[] {
  const together = cases.filter((one) => !one.alone)
  const alone = cases.filter((one) => one.alone)
  return [together, ...alone.map((one) => [one])].flatMap(sideBySide)
}

function sideBySide(cases: readonly Case[]): Round[] {
  const count = Math.max(0, ...cases.map(({ steps }) => steps.length))
  return Array.from({ length: count }, (_, round) => ({
    objects: cases.flatMap(({ steps }) => steps[Math.min(round, steps.length - 1)]?.objects ?? []),
    cells: cases.flatMap((one) =>
      (one.steps[round]?.cells ?? []).map((cell) => ({ id: cellId(one, round, cell), case: one, step: round, cell })),
    ),
  }))
}

/**
 * The cases that a pattern names, by their id or by that of one of their cells: a case is always run as a whole, since its later
 * steps live on its earlier ones.
 */
export function casesNamed(cases: readonly Case[], patterns: readonly string[]): Case[] {
  return cases.filter(
    (one) =>
      matchesAny(patterns, one.id) ||
      one.steps.some(({ cells }, step) => cells.some((cell) => matchesAny(patterns, cellId(one, step, cell)))),
  )
}

/** The cases with the cells of some families only. */
export function casesIn(cases: readonly Case[], families: readonly Family[]): Case[] {
  return cases.map((one) => ({
    ...one,
    steps: one.steps.map((step) => ({ ...step, cells: step.cells.filter(({ to }) => families.includes(to.family)) })),
  }))
}
