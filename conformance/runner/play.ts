import type { Case } from '../cases/case.js'
import { clusterObjects } from '../cases/objects.js'
import { isKpng } from '../deviations/index.js'
import type { Feed } from '../feed/feed.js'
import type { Lab } from '../lab/lab.js'
import type { Settings } from '../options.js'
import type { CellResult } from '../report/report.js'
import { type Canary, mainCanary, placeOf, specialisedCanary, waitForMovedFlow } from './canary.js'
import { skip } from './judge.js'
import { Pace } from './pace.js'
import { Proxier } from './proxier.js'
import { measureRound } from './round.js'
import { type PlacedCell, type Round, roundsOf } from './rounds.js'

/** What a run stands on. */
export interface Stage {
  readonly lab: Lab
  readonly feed: Feed
  readonly command: readonly string[]
  /** The command of the specialised proxy, if there is one. */
  readonly specialised: readonly string[] | undefined
  readonly settings: Settings
  /** Why there are no SCTP sockets here; undefined if there are. */
  readonly noSctp: string | undefined
  readonly signal: AbortSignal
  /** Takes what must be ended, in whatever way the run ends. */
  readonly closers: (() => unknown)[]
}

interface Played {
  readonly results: readonly CellResult[]
  readonly notes: readonly string[]
  /** A proxy did not live to the end of the run. */
  readonly proxyEnded: boolean
}

/** So often at most is everything played on a machine that is slow each time. */
const mostPlays = 3

/**
 * Feeds round after round and measures each of them. A case of several steps cannot be measured again in the middle, because what a
 * proxy remembers of its clients depends on the earlier steps. If such a case is wrong and the machine was slow meanwhile, all rounds
 * are played again, with the objects of all cases, and it counts what the case shows then. On a machine that was not slow, wrong is
 * wrong.
 */
export async function play(stage: Stage): Promise<Played> {
  const { settings, signal } = stage
  const run = new Run(stage)
  const rounds = roundsOf(settings.cases)
  const results = new Map((await run.play(rounds)).map((result) => [result.id, result]))
  for (let plays = 1; plays < mostPlays && run.wasSlow && run.isServing && !signal.aborted; plays++) {
    const again = settings.cases.filter((one) => one.steps.length > 1 && hasWrongCells(one, results.values()))
    if (again.length === 0) break
    const names = again.map(({ id }) => id).join(', ')
    const note = `Something was wrong, but the machine was slow. Played again: ${names}.`
    settings.log(note)
    run.notes.push(note)
    for (const result of await run.play(rounds.map((round) => only(again, round)))) {
      const attempts = (results.get(result.id)?.attempts ?? 0) + result.attempts
      results.set(result.id, { ...result, attempts })
    }
  }
  return { results: [...results.values()], notes: [...run.notes, ...run.proxierNotes], proxyEnded: run.hasEnded }
}

const hasWrongCells = ({ id }: Case, results: Iterable<CellResult>): boolean =>
  [...results].some((result) => result.case === id && result.status === 'wrong')

const only = (cases: readonly Case[], { objects, cells }: Round): Round => ({
  objects,
  cells: cells.filter((placed) => cases.includes(placed.case)),
})

interface Role {
  readonly title: string
  readonly canary: Canary
  readonly command: readonly string[]
}

class Run {
  readonly notes: string[] = []
  readonly #stage: Stage
  readonly #pace: Pace
  /**
   * The proxy under test, after the specialised one if there is one. In the kernel, newer rules of the same kind see a packet first: so
   * the main proxy sees all packets of the specialised one, and must leave them alone.
   */
  readonly #roles: readonly Role[]
  /** Those that have been started. */
  readonly #proxiers: Proxier[] = []
  /** Each round has a number of its own, also when it is played again. */
  #fed = 0
  #played = 0
  #wasSlow = false
  #movesFlows = true

  constructor(stage: Stage) {
    this.#stage = stage
    this.#pace = new Pace(stage.lab)
    const specialised = stage.settings.cases.some((one) => one.specialised) ? stage.specialised : undefined
    this.#roles = [
      ...(specialised ? [{ title: 'specialised proxy', canary: specialisedCanary, command: specialised }] : []),
      { title: 'proxy', canary: mainCanary, command: stage.command },
    ]
  }

  /** The proxy under test serves, and has not ended. */
  get isServing(): boolean {
    const main = this.#proxiers[this.#roles.length - 1]
    return main?.hasServed === true && !main.hasEnded
  }

  /** The machine was slow when the rounds were played last. */
  get wasSlow(): boolean {
    return this.#wasSlow
  }

  get hasEnded(): boolean {
    return this.#proxiers.some(({ hasEnded }) => hasEnded)
  }

  get proxierNotes(): string[] {
    return this.#proxiers.flatMap(({ notes }) => notes)
  }

  /** Plays the rounds in their order. */
  async play(rounds: readonly Round[]): Promise<CellResult[]> {
    const flowPrefix = `${++this.#played}/`
    this.#wasSlow = false
    const results: CellResult[] = []
    for (const [index, { objects, cells }] of rounds.entries()) {
      const skipped = new Map(cells.flatMap((placed) => skipReason(placed, this.#stage)))
      const measured = cells.filter(({ id }) => !skipped.has(id))
      for (const placed of cells) {
        const reason = skipped.get(placed.id)
        if (reason !== undefined) results.push(skip(placed, reason))
      }
      // A round without any cell is fed: it is the change that later cells are about.
      if (cells.length > 0 && measured.length === 0) continue
      const isProgrammed = await this.#program(
        objects,
        `Round ${index + 1} of ${rounds.length}: ${measured.length} cells`,
      )
      if (this.#stage.signal.aborted) break
      const { lab, settings } = this.#stage
      const settleMs = isProgrammed ? settings.settleMs : 0
      results.push(
        ...(await measureRound(measured, {
          lab,
          pace: this.#pace,
          deviations: settings.deviations,
          settleMs,
          flowPrefix,
        })),
      )
      this.#wasSlow ||= this.#pace.takeSlowness()
    }
    return results
  }

  /** Feeds objects and waits until the proxies have programmed them. Resolves with whether the proxy under test has. */
  async #program(objects: Round['objects'], title: string): Promise<boolean> {
    const { lab, feed, settings, signal } = this.#stage
    const { families, programTimeoutMs } = settings
    const pace = this.#pace
    const round = this.#fed++
    await feed.apply(
      [...clusterObjects, ...objects],
      this.#roles.flatMap(({ canary }) => canary.objects(round)),
    )
    pace.use()
    const took = new Map<Proxier, number>()
    for (const [index, role] of this.#roles.entries()) {
      const proxier = this.#proxiers[index] ?? this.#start(role)
      const ms = await proxier.programmed({ lab, pace, families, signal }, round, programTimeoutMs)
      if (signal.aborted) return false
      if (ms !== undefined) took.set(proxier, ms)
    }
    const late = this.#proxiers.filter((proxier) => !took.has(proxier))
    const programmed =
      late.length > 0
        ? late.map((proxier) => `the ${proxier.title} did not program it in time`).join(', ')
        : `programmed in ${Math.round(Math.max(...took.values()))} ms`
    settings.log(`${title}, ${programmed}`)
    if (late.length > 0) this.notes.push(`${title}, ${programmed}.`)
    const isProgrammed = took.has(this.#proxiers.at(-1) as Proxier)
    if (isProgrammed) {
      await this.#flowsMoved(round)
      pace.use((family) => placeOf(mainCanary, round, family))
      // How slow the machine was while a proxy started does not count.
      pace.takeSlowness()
    }
    return isProgrammed
  }

  async #flowsMoved(round: number): Promise<void> {
    const { lab, settings, signal } = this.#stage
    const { families, settleMs } = settings
    if (!this.#movesFlows || settleMs === 0) return
    const wait = { lab, pace: this.#pace, families, timeoutMs: settleMs, signal }
    this.#movesFlows = (await waitForMovedFlow(wait, round)) !== undefined
    if (this.#movesFlows || signal.aborted) return
    this.notes.push(
      'The proxy did not move a UDP client whose endpoint was gone. Cells of UDP clients that stay prove little.',
    )
  }

  #start({ title, canary, command }: Role): Proxier {
    const { lab, closers } = this.#stage
    const proxier = new Proxier(title, canary, command, lab.namespaceOf('node-a'))
    closers.push(() => proxier.stop())
    this.#proxiers.push(proxier)
    return proxier
  }
}

function skipReason({ id, cell, case: one }: PlacedCell, { settings, noSctp }: Stage): [string, string][] {
  const { feed, backend, specialised } = settings
  if (cell.to.protocol === 'SCTP' && noSctp !== undefined) return [[id, noSctp]]
  if (one.manifestsOnly !== undefined && feed !== 'manifests') return [[id, one.manifestsOnly]]
  if (one.kpngOnly !== undefined && !isKpng(backend)) return [[id, one.kpngOnly]]
  if (one.specialised && specialised === undefined) return [[id, 'no specialised proxy was given']]
  return []
}
