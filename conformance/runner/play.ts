import { clusterObjects } from '../cases/objects.js'
import { ConformanceError } from '../error.js'
import type { Feed } from '../feed/feed.js'
import type { Lab } from '../lab/lab.js'
import { whyNoSctp } from '../lab/sctp.js'
import type { Settings } from '../options.js'
import type { CellResult } from '../report/result.js'
import { canaryObjects, waitForCanary } from './canary.js'
import { skip } from './judge.js'
import { ProxyProcess } from './proxy.js'
import { measureRound } from './round.js'
import { type PlacedCell, roundsOf } from './rounds.js'

/** What a run stands on. */
export interface Stage {
  readonly lab: Lab
  readonly feed: Feed
  readonly command: readonly string[]
  readonly settings: Settings
  readonly signal: AbortSignal
  /** Takes what must be ended, in whatever way the run ends. */
  readonly closers: (() => unknown)[]
}

export interface Played {
  readonly results: readonly CellResult[]
  readonly notes: readonly string[]
  /** The proxy did not live to the end of the run. */
  readonly proxyEnded: boolean
}

/** When a proxy never served the canary, later rounds do not wait for it as long: the table is to come in reasonable time. */
const hopelessTimeoutMs = 1000

/** Feeds round after round and measures each of them. */
export async function play({ lab, feed, command, settings, signal, closers }: Stage): Promise<Played> {
  const { log, deviations, programTimeoutMs, settleMs } = settings
  const results: CellResult[] = []
  const notes: string[] = []
  const rounds = roundsOf(settings.cases)
  let proxy: ProxyProcess | undefined
  let served = false
  for (const [index, { objects, cells }] of rounds.entries()) {
    const skipped = new Map(cells.flatMap((placed) => skipReason(placed, settings)))
    const measured = cells.filter(({ id }) => !skipped.has(id))
    for (const placed of cells) {
      const reason = skipped.get(placed.id)
      if (reason !== undefined) results.push(skip(placed, reason))
    }
    if (measured.length === 0) continue
    await feed.apply([...clusterObjects, ...objects], canaryObjects(index))
    if (!proxy) {
      proxy = ProxyProcess.start(command, lab.namespaceOf('node-a'))
      closers.push(() => proxy?.stop())
    }
    const timeoutMs = served || index === 0 ? programTimeoutMs : hopelessTimeoutMs
    const canary = waitForCanary(lab, index, settings.families, timeoutMs, signal)
    const tookMs = await waitOrEnd(proxy, canary)
    if (tookMs === undefined && !served && proxy.ended !== undefined) throw neverServed(proxy)
    if (signal.aborted) break
    served ||= tookMs !== undefined
    const programmed =
      tookMs === undefined ? 'the proxy did not program it in time' : `programmed in ${Math.round(tookMs)} ms`
    log(`Round ${index + 1} of ${rounds.length}: ${measured.length} cells, ${programmed}`)
    if (tookMs === undefined) notes.push(`Round ${index + 1}: ${programmed}.`)
    results.push(...(await measureRound(lab, measured, deviations, tookMs === undefined ? 0 : settleMs)))
  }
  const proxyEnded = proxy?.ended !== undefined
  if (proxyEnded) notes.push(`The proxy ${proxy?.ended} during the run. It said last:\n${proxy?.said}`)
  if (!served && proxy) notes.push(`The proxy never served the canary. It said last:\n${proxy.said || '(nothing)'}`)
  return { results, notes, proxyEnded }
}

/** The canary's answer, or undefined at once when the proxy ends. */
const waitOrEnd = (proxy: ProxyProcess, canary: Promise<number | undefined>): Promise<number | undefined> =>
  Promise.race([canary, proxy.closed.then(() => undefined)])

function neverServed(proxy: ProxyProcess): ConformanceError {
  return new ConformanceError(
    'failed',
    `The proxy ${proxy.ended} before it served anything. It said last:\n${proxy.said || '(nothing)'}`,
  )
}

function skipReason({ id, cell, case: one }: PlacedCell, { feed }: Settings): [string, string][] {
  if (cell.to.protocol === 'SCTP') return [[id, whyNoSctp()]]
  if (one.manifestsOnly !== undefined && feed !== 'manifests') return [[id, one.manifestsOnly]]
  return []
}
