import { readFileSync } from 'node:fs'
import type { Outcome } from '@kpng/linux/testing'
import type { Cell, Expectation } from '../cases/case.js'
import type { Deviations } from '../deviations/deviation.js'
import { deviated, deviationOf } from '../deviations/deviation.js'
import { inTurns } from '../in-turns.js'
import type { Lab } from '../lab/lab.js'
import type { CellResult } from '../report/report.js'
import { isSilence } from './measure.js'
import type { Pace } from './pace.js'
import type { PlacedCell } from './rounds.js'
import { type Tally, type Way, wayId, wayOf } from './tally.js'

// A cell that is wrong is measured again until it is right, because the proxy may not have programmed it yet. That alone would accept a
// proxy that loses one connection in a hundred. So once the cells of a round are right, connections are made to them that nobody repeats.

/**
 * So many times as many if one was silent, or if some tries of a cell were right and others were not. With 200 connections, a fault of 1 in 100
 * then escapes once in 20,000 runs.
 */
const timesToBeSure = 5
/** Connections that say nothing because the machine was slow are made again, at most this many times as many. */
const mostTimes = 3

const waveSize = 8
const wavesAtATime = 12

export interface Proving {
  readonly lab: Lab
  readonly pace: Pace
  readonly deviations: Deviations
  readonly tally: Tally
  /** So many to each kind of address, with each protocol and family, in a run. */
  readonly connections: number
}

/** A cell, and what each of its connections must show. */
export interface Steady {
  readonly placed: PlacedCell
  readonly held: Expectation
}

/** The cells that connections can be made to at any time, with what they have shown so far. */
export function steadyCells(
  cells: readonly PlacedCell[],
  results: ReadonlyMap<string, CellResult>,
  deviations: Deviations,
): Steady[] {
  return cells.flatMap((placed) => {
    const { cell, id } = placed
    const status = results.get(id)?.status
    const deviation = status === 'deviates' ? deviationOf(deviations, id, cell.expect) : undefined
    const held = deviation ? deviated(cell.expect, deviation) : cell.expect
    const isKnown = status === 'right' || status === 'deviates' || status === 'unexpectedly-right'
    return isKnown && isPlain(cell) && isAnswered(cell, held) && wayOf(cell.to) ? [{ placed, held }] : []
  })
}

/** Each connection stands for itself. */
const isPlain = ({ flow, bytes, spacing, throughout }: Cell): boolean =>
  flow === undefined && bytes === undefined && spacing === undefined && !throughout

/** Connections get an answer at once. Datagrams that are refused get one only now and then. */
const isAnswered = ({ to }: Cell, { outcome }: Expectation): boolean =>
  outcome === 'reached' || outcome === 'passed' || (outcome === 'refused' && to.protocol === 'TCP')

/**
 * Makes connections to the cells of a round, all of which were right.
 * @param doubtful cells of which some tries were wrong beside others that were right
 */
export async function proveStability(
  steady: readonly Steady[],
  doubtful: ReadonlySet<string>,
  proving: Proving,
): Promise<void> {
  const { tally, connections } = proving
  const toBeSure = timesToBeSure * connections
  const byWay = new Map<string, { way: Way; cells: Steady[] }>()
  for (const one of steady) {
    const way = wayOf(one.placed.cell.to) as Way
    const group = byWay.get(wayId(way)) ?? { way, cells: [] }
    byWay.set(wayId(way), group)
    group.cells.push(one)
  }
  const groups = [...byWay.values()]
  await ask(
    groups.map(({ way, cells }) => {
      const isDoubtful = cells.some(({ placed }) => doubtful.has(placed.id))
      // Each cell at least once, also in later rounds.
      const count = Math.max(cells.length, isDoubtful ? toBeSure : connections - tally.connectionsOf(way))
      return { way, cells, count }
    }),
    proving,
  )
  const open = groups.filter(({ way }) => tally.isOpen(way))
  await ask(
    open.map(({ way, cells }) => ({ way, cells, count: toBeSure })),
    proving,
  )
}

interface Lot {
  readonly way: Way
  readonly cells: readonly Steady[]
  readonly count: number
}

/** Shares out the connections of each lot among its cells. Once the proxy is known to be at fault, the rest is left. */
async function ask(lots: readonly Lot[], proving: Proving): Promise<void> {
  const { tally, connections } = proving
  const isDecided = (way: Way) => tally.isProven(way) && tally.connectionsOf(way) >= connections
  const waves = lots.flatMap(({ way, cells, count }) =>
    cells.map((steady, place) => async () => {
      let left = Math.floor(count / cells.length) + (place < count % cells.length ? 1 : 0)
      let spare = left * mostTimes
      while (left > 0 && spare > 0 && !isDecided(way)) {
        const size = Math.min(left, waveSize)
        const made = await connect(steady, size, proving)
        left -= made
        spare -= size
      }
    }),
  )
  await inTurns(waves, wavesAtATime)
}

const when = 'after it had been right'

/** Makes connections at once. Returns how many of them say something. */
async function connect({ placed, held }: Steady, count: number, { lab, pace, tally }: Proving): Promise<number> {
  const { client, to } = placed.cell
  const timeoutMs = onceMs(pace, placed.cell)
  const lostBefore = packetsLost()
  const [controlMs, ...outcomes] = await Promise.all([
    pace.measure(client, to.family),
    ...Array.from({ length: count }, () => connectOnce(lab, placed.cell, timeoutMs)),
  ])
  const isConclusive = isSilenceKnown([held]) && pace.isConclusive(timeoutMs, controlMs) && packetsLost() === lostBefore
  const telling = outcomes.filter((outcome) => isConclusive || !isSilence(outcome))
  tally.add(placed, when, [held], telling)
  return telling.length
}

/** How long a connection waits. A SYN goes out again after a second, and then nobody sees that the first one was lost. */
export const onceMs = (pace: Pace, { to }: Cell): number => pace.timeoutMs(to, 700)

/** Whether silence is wrong. An ICMP error that refuses may be lost, and the kernel sends only some of them per second. */
export const isSilenceKnown = (allowed: readonly Expectation[]): boolean =>
  allowed.every(({ outcome }) => outcome !== 'refused')

/** One connection, or one datagram that is not sent again. */
export const connectOnce = (lab: Lab, { client, to }: Cell, timeoutMs: number): Promise<Outcome> => {
  const place = { protocol: to.protocol, ip: to.ip, port: to.port }
  return lab.agents[client].call('probe', { to: place, timeoutMs, sendOnce: true })
}

/** How many packets this machine has dropped so far because its processors had no time for them, in whatever namespace. */
export function packetsLost(): number {
  try {
    const lines = readFileSync('/proc/net/softnet_stat', 'utf8').trim().split('\n')
    return lines.reduce((sum, line) => sum + Number.parseInt(line.split(/\s+/)[1] ?? '0', 16), 0)
  } catch {
    return 0
  }
}
