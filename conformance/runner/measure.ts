import { setTimeout as sleep } from 'node:timers/promises'
import type { Outcome, Place } from '@kpng/linux/testing'
import type { Cell } from '../cases/case.js'
import { serversHit } from '../evaluation/evaluate.js'
import type { Lab } from '../lab/lab.js'

/**
 * After so long without an answer a packet counts as dropped. An ICMPv6 error that comes back while the client's socket is still busy
 * connecting is lost in the kernel, as it does between namespaces, where everything is immediate; the next SYN, a second later,
 * brings another.
 */
const dropTimeoutMs = ({ protocol, family }: Cell['to']): number =>
  protocol === 'TCP' && family === 'IPv6' ? 1400 : 700

/** So many tries of one cell at a time. */
const waveSize = 8
/** With two endpoints and fair chances, one is missed by all of so many tries once in 10¹⁹ runs. */
const mostTries = 64

/** A server that should get half of so many and gets less than a third, or more than two thirds, is no chance: 1 in 10⁶ runs. */
const evenTries = 200

/** Asks as often as the cell needs, and returns what came of each try. */
export async function measure(
  lab: Lab,
  { client, to, expect, tries, spacingMs, flow, bytes }: Cell,
  flowPrefix: string,
): Promise<Outcome[]> {
  const agent = lab.agents[client]
  const place: Place = { protocol: to.protocol as Place['protocol'], ip: to.ip, port: to.port }
  const ask = () =>
    agent.call('probe', {
      to: place,
      timeoutMs: dropTimeoutMs(to),
      ...(flow !== undefined && { flow: `${flowPrefix}${flow}`, keepGoing: true }),
      ...(bytes !== undefined && { bytes }),
    })
  if (flow !== undefined) return [await ask()]

  const outcomes: Outcome[] = []
  if (spacingMs !== undefined) {
    for (let i = 0; i < (tries ?? waveSize); i++) {
      if (i > 0) await sleep(spacingMs)
      outcomes.push(await ask())
    }
    return outcomes
  }
  const wanted = tries ?? triesFor(expect)
  while (outcomes.length < wanted || missesServers(expect, outcomes)) {
    const count = Math.min(waveSize, outcomes.length < wanted ? wanted - outcomes.length : waveSize)
    outcomes.push(...(await Promise.all(Array.from({ length: count }, ask))))
    // What is refused or dropped is so for all tries; and a time-out is long.
    if (outcomes.some(({ outcome }) => outcome !== 'reached')) break
  }
  return outcomes
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
