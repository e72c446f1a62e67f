import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome, Place } from '@kpng/linux/testing'
import type { Cell } from '../cases/case.js'
import { serversHit } from '../evaluation/evaluate.js'
import type { Lab } from '../lab/lab.js'
import type { Pace } from './pace.js'

/** So many tries of one cell at a time. */
const waveSize = 8
/** With two endpoints and fair chances, one is missed by all of so many tries once in 10¹⁹ runs. */
const mostTries = 64

/** A server that should get half of so many and gets less than a third, or more than two thirds, is no chance: 1 in 10⁶ runs. */
const evenTries = 200

/** What the machine was too slow for is done again, so often at most. */
const mostRepeats = 5

/** Asks as often as the cell needs, and returns what came of each try. */
export async function measure(lab: Lab, pace: Pace, cell: Cell, flowPrefix: string): Promise<Outcome[]> {
  const ask = askOnce(lab, cell, flowPrefix)
  if (cell.flow !== undefined) return wave(pace, cell, ask, 1)
  if (cell.spacing !== undefined) return spaced(pace, cell, cell.spacing, ask)

  const { expect, tries } = cell
  const outcomes: Outcome[] = []
  const wanted = tries ?? triesFor(expect)
  while (outcomes.length < wanted || missesServers(expect, outcomes)) {
    const count = Math.min(waveSize, outcomes.length < wanted ? wanted - outcomes.length : waveSize)
    outcomes.push(...(await wave(pace, cell, ask, count)))
    // What is refused or dropped is so for all tries; and a time-out is long.
    if (outcomes.some(({ outcome }) => outcome !== 'reached')) break
  }
  return outcomes
}

type Ask = (timeoutMs: number) => Promise<Outcome>

/** One request of a cell. */
export function askOnce(lab: Lab, { client, to, flow, bytes }: Cell, flowPrefix: string): Ask {
  const place: Place = { protocol: to.protocol, ip: to.ip, port: to.port }
  return (timeoutMs) =>
    lab.agents[client].call('probe', {
      to: place,
      timeoutMs,
      ...(flow !== undefined && { flow: `${flowPrefix}${flow}`, keepGoing: true }),
      ...(bytes !== undefined && { bytes }),
    })
}

/** Several tries at once. If nothing came back but the machine was slow, they are made again with more time. */
async function wave(pace: Pace, { client, to }: Cell, ask: Ask, count: number): Promise<Outcome[]> {
  for (let repeats = 0; ; repeats++) {
    const timeoutMs = pace.timeoutMs(to)
    const [controlMs, ...outcomes] = await Promise.all([
      pace.measure(client, to.family),
      ...Array.from({ length: count }, () => ask(timeoutMs)),
    ])
    if (repeats === mostRepeats || !outcomes.some(isSilence) || pace.isConclusive(timeoutMs, controlMs)) return outcomes
  }
}

/** No answer, or no more than a connection: more time might have brought one. */
export const isSilence = ({ outcome }: Outcome): boolean => outcome === 'dropped' || outcome === 'broken'

/** One try after the other. If the machine was so slow that they prove nothing, all are made again. */
async function spaced(
  pace: Pace,
  cell: Cell,
  { ms, atMostMs = Number.POSITIVE_INFINITY }: NonNullable<Cell['spacing']>,
  ask: Ask,
): Promise<Outcome[]> {
  for (let repeats = 0; ; repeats++) {
    const outcomes: Outcome[] = []
    let longestMs = 0
    let before = performance.now()
    for (let i = 0; i < (cell.tries ?? waveSize); i++) {
      if (i > 0) await sleep(ms)
      const start = performance.now()
      outcomes.push(...(await wave(pace, cell, ask, 1)))
      longestMs = Math.max(longestMs, performance.now() - before)
      before = start
    }
    if (repeats === mostRepeats || longestMs <= atMostMs) return outcomes
  }
}

function triesFor(expect: Cell['expect']): number {
  if (expect.outcome !== 'reached') return 3
  if (expect.hits === 'evenly') return evenTries
  return expect.servers.length === 1 ? 8 : 16
}

function missesServers(expect: Cell['expect'], outcomes: readonly Outcome[]): boolean {
  if (expect.outcome !== 'reached' || (expect.hits ?? 'all') !== 'all' || outcomes.length >= mostTries) return false
  return serversHit(expect, outcomes).length < expect.servers.length
}
