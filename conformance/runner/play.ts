import type { Case } from '../cases/case.js'
import { clusterObjects } from '../cases/objects.js'
import type { ApiServerSwitch } from '../feed/api-relay.js'
import type { Feed } from '../feed/feed.js'
import type { Lab } from '../lab/lab.js'
import type { Settings } from '../options.js'
import type { PlantedFault } from '../planted/laid-over.js'
import { type CellResult, isFailure, type Stability } from '../report/report.js'
import { perform } from './actions.js'
import { mainCanary, placeOf, waitForMovedFlow } from './canary.js'
import { ChangeWatch, watchable } from './change-watch.js'
import { skip, wrongUnasked } from './judge.js'
import { askOnce } from './measure.js'
import { Pace } from './pace.js'
import type { Proxier } from './proxier.js'
import { type Commands, Proxiers } from './proxiers.js'
import { RequestLoop } from './request-loop.js'
import { type Measured, measureRound, Patience } from './round.js'
import { type PlacedAction, type PlacedCell, type Round, roundsOf } from './rounds.js'
import { skipReason } from './skip.js'
import { type Proving, proveStability, type Steady, steadyCells } from './stability.js'
import { Tally } from './tally.js'

/** What a run stands on. */
export interface Stage {
  readonly lab: Lab
  readonly feed: Feed
  readonly commands: Commands
  /** Undefined if objects come from manifests. */
  readonly apiServer: ApiServerSwitch | undefined
  readonly settings: Settings
  /** Why there are no SCTP sockets here; undefined if there are. */
  readonly noSctp: string | undefined
  readonly fault: PlantedFault | undefined
  readonly signal: AbortSignal
  /** Takes what must be ended, in whatever way the run ends. */
  readonly closers: (() => unknown)[]
}

interface Played {
  readonly results: readonly CellResult[]
  readonly stability: readonly Stability[]
  readonly notes: readonly string[]
  /** A proxy did not live to the end of the run. */
  readonly proxyEnded: boolean
}

/** So often at most is everything played on a machine that is slow each time. */
const mostPlays = 3

/**
 * Feeds round after round and measures each of them. A case of several steps cannot be measured again in the middle, because what a
 * proxy remembers of its clients depends on the earlier steps. If such a case is wrong and the machine was slow meanwhile, its rounds
 * are played again, with the objects of the other cases in them, and it counts what the case shows then. On a machine that was not slow, wrong is
 * wrong.
 */
export async function play(stage: Stage): Promise<Played> {
  const { settings, signal } = stage
  const run = new Run(stage)
  const rounds = roundsOf(settings.cases)
  const results = new Map((await run.play(rounds)).map((result) => [result.id, result]))
  const mayHelp = () => run.wasSlow && run.proxiers.isServing && run.tally.unstable.size === 0 && !signal.aborted
  for (let plays = 1; plays < mostPlays && mayHelp(); plays++) {
    const again = settings.cases.filter((one) => one.steps.length > 1 && hasWrongCells(one, results.values()))
    if (again.length === 0) break
    const names = again.map(({ id }) => id).join(', ')
    const note = `Something was wrong, but the machine was slow. Played again: ${names}.`
    settings.log(note)
    run.notes.push(note)
    const affected = rounds.filter((round) => round.cases.some((one) => again.includes(one)))
    for (const result of await run.play(affected.map((round) => only(again, round)))) {
      const attempts = (results.get(result.id)?.attempts ?? 0) + result.attempts
      results.set(result.id, { ...result, attempts })
    }
  }
  for (const [id, got] of run.tally.unstable) {
    const result = results.get(id)
    if (result) results.set(id, { ...result, status: 'unstable', got })
  }
  return {
    results: [...results.values()],
    stability: run.tally.stability,
    notes: [
      ...run.notes,
      ...run.proxiers.notes,
      ...stabilityNotes(run.tally.stability),
      ...lateNotes(results.values()),
    ],
    proxyEnded: run.proxiers.hasEnded,
  }
}

const stabilityNotes = (stability: readonly Stability[]): string[] =>
  stability.flatMap(({ kind, protocol, family, connections, failed }) =>
    failed > 0
      ? [
          `Unstable: ${failed} of ${connections} connections to a ${kind} (${protocol}, ${family}) failed where others were right.`,
        ]
      : [],
  )

function lateNotes(results: Iterable<CellResult>): string[] {
  const late = [...results].flatMap(({ rightAfterMs }) => rightAfterMs ?? [])
  if (late.length === 0) return []
  return [`Not right at once, but after up to ${Math.max(...late)} ms: ${late.length} cells. -v 1 shows them.`]
}

const hasWrongCells = ({ id }: Case, results: Iterable<CellResult>): boolean =>
  [...results].some((result) => result.case === id && result.status === 'wrong')

const only = (cases: readonly Case[], round: Round): Round => ({
  ...round,
  cells: round.cells.filter((placed) => cases.includes(placed.case)),
  actions: round.actions.filter((placed) => cases.includes(placed.case)),
})

class Run {
  readonly notes: string[] = []
  readonly proxiers: Proxiers
  readonly tally = new Tally()
  readonly #stage: Stage
  readonly #pace: Pace
  readonly #patience: Patience
  /** Each round has a number of its own, also when it is played again. */
  #fed = 0
  #played = 0
  #wasSlow = false
  #movesFlows = true
  /** Cases whose actions this machine cannot do, and why. */
  readonly #impossible = new Map<Case, string>()
  #watch: ChangeWatch | undefined
  /** By the id of their cell. */
  #loops = new Map<string, RequestLoop>()

  constructor(stage: Stage) {
    this.#stage = stage
    this.#pace = new Pace(stage.lab)
    this.#patience = new Patience(stage.settings.settleMs)
    this.proxiers = new Proxiers(stage.lab, stage.commands)
    stage.closers.push(() => this.proxiers.stop())
  }

  get #proving(): Proving {
    const { lab, settings } = this.#stage
    const { deviations, connections } = settings
    return { lab, pace: this.#pace, deviations, tally: this.tally, connections }
  }

  /** The machine was slow when the rounds were played last. */
  get wasSlow(): boolean {
    return this.#wasSlow
  }

  /** Plays the rounds in their order. */
  async play(rounds: readonly Round[]): Promise<CellResult[]> {
    const flowPrefix = `${++this.#played}/`
    this.#wasSlow = false
    const results = new Map<string, CellResult>()
    const keep = (result: CellResult) => results.set(result.id, result)
    for (const [index, round] of rounds.entries()) {
      const isPlayed = this.#isPlayed(round)
      if (isPlayed) {
        const title = `Round ${index + 1} of ${rounds.length}: ${this.#measured(round).length} cells`
        const isProgrammed = await this.#program(round, title)
        if (this.#stage.signal.aborted) break
        await this.#act(round)
        const cells = this.#measured(round)
        const { results: seen, doubtful } = await this.#measure(cells, flowPrefix, isProgrammed ? round : undefined)
        seen.forEach(keep)
        await this.#watch?.end()
        this.#watch = undefined
        this.#wasSlow ||= this.#pace.takeSlowness()
        const steady = isProgrammed ? steadyCells(cells, results, this.#proving.deviations) : []
        await proveStability(steady, doubtful, this.#proving)
        this.#watchChange(steady, rounds, index)
      }
      for (const placed of round.cells) this.#skipped(placed).forEach(keep)
      if (isPlayed) this.#showProgress(rounds, [...results.values()])
      if (this.proxiers.hasEnded) {
        const left = rounds.slice(index + 1).flatMap(({ cells }) => cells)
        for (const placed of left) keep(this.#skipped(placed)[0] ?? wrongUnasked(placed))
        this.notes.push(
          `A proxy ended in round ${index + 1} of ${rounds.length}. The cells of later rounds count as wrong.`,
        )
        break
      }
      this.#startLoops(rounds[index + 1])
    }
    return [...results.values()]
  }

  #showProgress(rounds: readonly Round[], results: readonly CellResult[]): void {
    const total = rounds.reduce((sum, { cells }) => sum + cells.length, 0)
    const wrong = results.filter(isFailure).length
    if (total > 0) this.#stage.settings.log(`  ${results.length} of ${total} cells, ${wrong} wrong`)
  }

  /** Its result if it cannot be measured. */
  #skipped(placed: PlacedCell): CellResult[] {
    const reason = this.#whySkipped(placed)
    return reason === undefined ? [] : [skip(placed, reason)]
  }

  #whySkipped(placed: PlacedCell): string | undefined {
    return this.#impossible.get(placed.case) ?? skipReason(placed, this.#stage)
  }

  /** A round without any cell is fed: it is the change that later cells are about. */
  #isPlayed = (round: Round): boolean => round.cells.length === 0 || this.#measured(round).length > 0

  #measured = ({ cells }: Round): PlacedCell[] => cells.filter((placed) => this.#whySkipped(placed) === undefined)

  async #act({ actions }: Round): Promise<void> {
    const isPossible = ({ case: one }: PlacedAction) =>
      one.steps.some(({ cells }, step) =>
        cells.some((cell) => this.#whySkipped({ id: cell.id, case: one, step, cell }) === undefined),
      )
    const failed = await perform(actions.filter(isPossible), { ...this.#stage, proxiers: this.proxiers })
    for (const [one, why] of failed) this.#impossible.set(one, why)
  }

  /** Clients that go on asking until the next round is measured. */
  #startLoops(next: Round | undefined): void {
    if (!next) return
    const { lab } = this.#stage
    for (const { id, cell, step } of this.#measured(next)) {
      if (cell.throughout && step > 0) this.#loops.set(id, new RequestLoop(askOnce(lab, cell, '')))
    }
  }

  /** Clients that make connections while the next round is fed, until it is measured. */
  #watchChange(steady: readonly Steady[], rounds: readonly Round[], index: number): void {
    const [round, next] = rounds.slice(index, index + 2)
    if (!round || !next || !this.#isPlayed(next)) return
    const isAtomic = this.#stage.settings.feed === 'manifests'
    const watched = watchable(steady, round, next, this.#proving, isAtomic)
    this.#watch = new ChangeWatch(watched, `during the change to round ${index + 2}`, this.#proving)
  }

  async #measure(cells: readonly PlacedCell[], flowPrefix: string, round: Round | undefined): Promise<Measured> {
    const { lab, settings } = this.#stage
    const ended = [...this.#loops].map(async ([id, loop]) => [id, await loop.end()] as const)
    this.#loops = new Map()
    return measureRound(cells, {
      lab,
      pace: this.#pace,
      deviations: settings.deviations,
      settleMs: round && settings.settleMs > 0 ? Math.max(settings.settleMs, round.settleMs ?? 0) : 0,
      patience: this.#patience,
      flowPrefix,
      before: new Map(await Promise.all(ended)),
    })
  }

  /** Feeds objects and waits until the proxies have programmed them. Resolves with whether the proxy under test has. */
  async #program(next: Round, title: string): Promise<boolean> {
    const { lab, feed, apiServer, settings, fault, signal } = this.#stage
    const { families, programTimeoutMs } = settings
    const pace = this.#pace
    const round = this.#fed++
    await this.proxiers.prepare(next)
    apiServer?.back()
    await feed.apply([...clusterObjects, ...next.objects], this.proxiers.canaryObjects(round))
    fault?.changed(this.proxiers.mainPid)
    pace.use()
    const took = new Map<Proxier, number | undefined>()
    for (const proxier of this.proxiers.needed()) {
      took.set(proxier, await proxier.programmed({ lab, pace, families, signal }, round, programTimeoutMs))
      if (signal.aborted) return false
    }
    const late = [...took].flatMap(([{ title: who }, ms]) => (ms === undefined ? [who] : []))
    const programmed =
      late.length > 0
        ? late.map((who) => `the ${who} did not program it in time`).join(', ')
        : `programmed in ${Math.round(Math.max(...[...took.values()].map(Number)))} ms`
    settings.log(`${title}, ${programmed}`)
    if (late.length > 0) this.notes.push(`${title}, ${programmed}.`)
    // The proxy under test is the last one.
    const isProgrammed = [...took.values()].at(-1) !== undefined
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
}
