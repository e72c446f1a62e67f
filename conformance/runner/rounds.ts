import type { Family } from '@kpng/api'
import { type Action, type Case, type Cell, cellId, type KubernetesObject, type ProxyFlags } from '../cases/case.js'
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
  /** The cases that are played in this round and in those of its group. */
  readonly cases: readonly Case[]
  readonly objects: readonly KubernetesObject[]
  readonly cells: readonly PlacedCell[]
  /** What is done before the cells are measured. */
  readonly actions: readonly PlacedAction[]
  /** What the proxy under test is started with. */
  readonly flags?: ProxyFlags | undefined
  /** node-b runs the proxy too. */
  readonly onBothNodes?: boolean
  /** How long a wrong cell may take to become right, in milliseconds, if that is longer than `--settle`. */
  readonly settleMs?: number
}

export interface PlacedAction {
  readonly case: Case
  readonly action: Action
}

/**
 * All cases go side by side: the first round has the first step of each, the second round the second, and so on; a case that has
 * ended keeps its last objects. So a run has as many feeds as the longest case has steps, not as there are steps in all. Cases
 * that want to be alone come in rounds of their own, and those that need other proxies in rounds with their like.
 */
export function roundsOf(cases: readonly Case[]): Round[] {
  const groups = new Map<string, Case[]>([['', []]])
  for (const one of cases) groups.set(groupOf(one), [...(groups.get(groupOf(one)) ?? []), one])
  return [...groups.values()].flatMap(sideBySide)
}

function groupOf({ id, alone = false, onBothNodes = false, flags }: Case): string {
  if (alone) return id
  return onBothNodes ? 'both nodes' : (flags?.words.join(' ') ?? '')
}

function sideBySide(cases: readonly Case[]): Round[] {
  const count = Math.max(0, ...cases.map(({ steps }) => steps.length))
  return Array.from({ length: count }, (_, round) => ({
    cases,
    objects: cases.flatMap(({ steps }) => steps[Math.min(round, steps.length - 1)]?.objects ?? []),
    actions: cases.flatMap((one) => (one.steps[round]?.actions ?? []).map((action) => ({ case: one, action }))),
    flags: cases[0]?.flags,
    onBothNodes: cases.some((one) => one.onBothNodes),
    settleMs: Math.max(0, ...cases.map(({ steps }) => steps[round]?.settleMs ?? 0)),
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
