import { clusterObjects } from '../cases/objects.js'
import { isKpng } from '../deviations/index.js'
import type { Feed } from '../feed/feed.js'
import type { Lab } from '../lab/lab.js'
import { whyNoSctp } from '../lab/sctp.js'
import type { Settings } from '../options.js'
import type { CellResult } from '../report/result.js'
import { mainCanary, specialisedCanary } from './canary.js'
import { skip } from './judge.js'
import { Proxier } from './proxier.js'
import { measureRound } from './round.js'
import { type PlacedCell, roundsOf } from './rounds.js'

/** What a run stands on. */
export interface Stage {
  readonly lab: Lab
  readonly feed: Feed
  readonly command: readonly string[]
  /** The command of the specialised proxy, if there is one. */
  readonly specialised: readonly string[] | undefined
  readonly settings: Settings
  readonly signal: AbortSignal
  /** Takes what must be ended, in whatever way the run ends. */
  readonly closers: (() => unknown)[]
}

export interface Played {
  readonly results: readonly CellResult[]
  readonly notes: readonly string[]
  /** A proxy did not live to the end of the run. */
  readonly proxyEnded: boolean
}

/** Feeds round after round and measures each of them. */
export async function play(stage: Stage): Promise<Played> {
  const { lab, feed, settings, signal } = stage
  const { log, deviations, settleMs } = settings
  const results: CellResult[] = []
  const notes: string[] = []
  const rounds = roundsOf(settings.cases)
  const canaries = canariesOf(stage)
  let proxiers: readonly Proxier[] = []
  for (const [index, { objects, cells }] of rounds.entries()) {
    const skipped = new Map(cells.flatMap((placed) => skipReason(placed, settings)))
    const measured = cells.filter(({ id }) => !skipped.has(id))
    for (const placed of cells) {
      const reason = skipped.get(placed.id)
      if (reason !== undefined) results.push(skip(placed, reason))
    }
    if (measured.length === 0) continue
    await feed.apply(
      [...clusterObjects, ...objects],
      canaries.flatMap((canary) => canary.objects(index)),
    )
    if (proxiers.length === 0) proxiers = startProxiers(stage)
    const took = await Promise.all(proxiers.map((proxier) => proxier.programmed(lab, index, settings, signal)))
    if (signal.aborted) break
    const late = proxiers.filter((_, place) => took[place] === undefined)
    const programmed =
      late.length > 0
        ? `${late.map(({ title }) => `the ${title} did not program it in time`).join(', ')}`
        : `programmed in ${Math.round(Math.max(...took.map((ms) => ms ?? 0)))} ms`
    log(`Round ${index + 1} of ${rounds.length}: ${measured.length} cells, ${programmed}`)
    if (late.length > 0) notes.push(`Round ${index + 1}: ${programmed}.`)
    results.push(...(await measureRound(lab, measured, deviations, took[0] === undefined ? 0 : settleMs)))
  }
  notes.push(...proxiers.flatMap((proxier) => proxier.notes))
  return { results, notes, proxyEnded: proxiers.some(({ hasEnded }) => hasEnded) }
}

const wantsSpecialised = ({ specialised, settings }: Stage): boolean =>
  specialised !== undefined && settings.cases.some((one) => one.specialised)

const canariesOf = (stage: Stage) => [mainCanary, ...(wantsSpecialised(stage) ? [specialisedCanary] : [])]

/** The proxy under test comes first. */
function startProxiers(stage: Stage): Proxier[] {
  const { lab, command, specialised, closers } = stage
  const start = (...args: ConstructorParameters<typeof Proxier>) => {
    const proxier = new Proxier(...args)
    closers.push(() => proxier.stop())
    return proxier
  }
  const namespace = lab.namespaceOf('node-a')
  return [
    start('proxy', mainCanary, command, namespace),
    ...(specialised && wantsSpecialised(stage)
      ? [start('specialised proxy', specialisedCanary, specialised, namespace)]
      : []),
  ]
}

function skipReason({ id, cell, case: one }: PlacedCell, settings: Settings): [string, string][] {
  const { feed, backend, specialised } = settings
  if (cell.to.protocol === 'SCTP') return [[id, whyNoSctp()]]
  if (one.manifestsOnly !== undefined && feed !== 'manifests') return [[id, one.manifestsOnly]]
  if (one.kpngOnly !== undefined && !isKpng(backend)) return [[id, one.kpngOnly]]
  if (one.specialised && specialised === undefined) return [[id, 'no specialised proxy was given']]
  return []
}
