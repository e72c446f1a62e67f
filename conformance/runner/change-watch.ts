import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome } from '@kpng/linux/testing'
import { addressOf, type Host, podPorts } from '../addresses.js'
import type { Case, Expectation } from '../cases/case.js'
import { allowedWhileChanging, deviated, deviationOf } from '../deviations/deviation.js'
import { isSilence } from './measure.js'
import type { PlacedCell, Round } from './rounds.js'
import { connectOnce, isSilenceKnown, onceMs, type Proving, packetsLost, type Steady } from './stability.js'
import { type Way, wayId, wayOf } from './tally.js'

// While a round is fed and programmed, connections go on. Those to Services that do not change must be right all the time. Those to Services
// that change may show what was right before or what is right afterwards, and nothing else.

/** A cell with all that its connections may show. */
interface Watched {
  readonly placed: PlacedCell
  readonly allowed: readonly Expectation[]
}

interface Seen extends Watched {
  readonly outcome: Outcome
  readonly startMs: number
  readonly endMs: number
}

/** Between two connections of a lane. */
const pauseMs = 40
/** Of connections to pods, without any proxy, which show how fast the machine is. */
const controlTimeoutMs = 10_000

/**
 * What can be watched while a round takes the place of another one.
 * @param steady the cells of the round before
 * @param isAtomic all objects of a round become visible at once, so that there is no state in between
 */
export function watchable(
  steady: readonly Steady[],
  before: Round,
  after: Round,
  { deviations }: Pick<Proving, 'deviations'>,
  isAtomic: boolean,
): Watched[] {
  const isDisturbed = [before, after].some(({ actions }) => actions.some(({ action }) => action.kind !== 'run'))
  if (before.cases !== after.cases || isDisturbed) return []
  return steady.flatMap(({ placed, held }) => {
    if (!changes(placed.case, placed.step)) return [{ placed, allowed: [held] }]
    const later = after.cells.filter((each) => each.case === placed.case && isAlike(each, placed))
    // Two proxies that hand over a Service do not do it at the same moment.
    if (later.length === 0 || !isAtomic || placed.case.specialised) return []
    const expected = later.flatMap(({ id, cell: { expect } }) => {
      const deviation = deviationOf(deviations, id, expect)
      return deviation ? [expect, deviated(expect, deviation)] : [expect]
    })
    const between = allowedWhileChanging(deviations, placed.id, held)
    return [{ placed, allowed: [held, ...expected, ...between] }]
  })
}

const isAlike = ({ cell: one }: PlacedCell, { cell: other }: PlacedCell): boolean =>
  one.client === other.client && JSON.stringify(one.to) === JSON.stringify(other.to)

const changes = ({ steps }: Case, step: number): boolean =>
  step + 1 < steps.length && JSON.stringify(steps[step]?.objects) !== JSON.stringify(steps[step + 1]?.objects)

/** Makes connections until it is ended: in one lane for each kind of address, protocol and family. */
export class ChangeWatch {
  readonly #proving: Proving
  readonly #when: string
  readonly #seen: Seen[] = []
  readonly #controls: { readonly client: Host; readonly startMs: number; readonly endMs: number }[] = []
  readonly #lostBefore = packetsLost()
  readonly #done: Promise<unknown>
  #isOver = false

  /** @param when in words */
  constructor(watched: readonly Watched[], when: string, proving: Proving) {
    this.#proving = proving
    this.#when = when
    const lanes = new Map<string, Watched[]>()
    for (const one of watched) {
      const id = wayId(wayOf(one.placed.cell.to) as Way)
      lanes.set(id, [...(lanes.get(id) ?? []), one])
    }
    const clients = [...new Set(watched.map(({ placed }) => placed.cell.client))]
    this.#done = Promise.all([
      ...[...lanes.values()].map((lane) => this.#goOn((turn) => this.#ask(lane[turn % lane.length] as Watched))),
      ...clients.map((client) => this.#goOn(() => this.#control(client))),
    ])
    // The one that ends the watch hears of it. When the run is interrupted, nobody does.
    this.#done.catch(() => {})
  }

  /** Resolves when the last connection is over and all are in the tally. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#done
    const hasLost = packetsLost() !== this.#lostBefore
    for (const seen of this.#seen) {
      const isConclusive = !hasLost && isSilenceKnown(seen.allowed) && this.#isConclusive(seen)
      if (isSilence(seen.outcome) && !isConclusive) continue
      this.#proving.tally.add(seen.placed, this.#when, seen.allowed, [seen.outcome])
    }
  }

  async #goOn(connect: (turn: number) => Promise<void>): Promise<void> {
    for (let turn = 0; !this.#isOver; turn++) {
      await connect(turn)
      await sleep(pauseMs)
    }
  }

  async #ask(watched: Watched): Promise<void> {
    const { lab, pace } = this.#proving
    const { cell } = watched.placed
    const startMs = performance.now()
    const outcome = await connectOnce(lab, cell, onceMs(pace, cell))
    this.#seen.push({ ...watched, outcome, startMs, endMs: performance.now() })
  }

  async #control(client: Host): Promise<void> {
    const startMs = performance.now()
    const to = { protocol: 'TCP', ip: addressOf.a1.IPv4, port: podPorts[0] } as const
    await this.#proving.lab.agents[client].call('probe', { to, timeoutMs: controlTimeoutMs })
    this.#controls.push({ client, startMs, endMs: performance.now() })
  }

  /** Silence says something if pods answered the same client much faster meanwhile. */
  #isConclusive({ placed, startMs, endMs }: Seen): boolean {
    const meanwhile = this.#controls.filter(
      (control) => control.client === placed.cell.client && control.endMs >= startMs && control.startMs <= endMs,
    )
    const slowestMs = Math.max(...meanwhile.map((control) => control.endMs - control.startMs))
    return meanwhile.length > 0 && this.#proving.pace.isConclusive(endMs - startMs, slowestMs)
  }
}
