import { KpngError, messageOf } from '@kpng/api'
import { matchesAny } from '../evaluation/glob.js'
import type { ConformanceOptions } from '../options.js'
import { proxyNamed } from '../proxies.js'
import { type CellResult, isFailure } from '../report/report.js'
import { runConformance } from '../run.js'
import { FaultyCopy, faultsIn } from './in-code.js'
import { laidOver } from './laid-over.js'

// Whether the kit sees faults. Each is planted in a proxy that is right, or laid over it, and the kit must not accept it.

export interface PlantedOptions extends ConformanceOptions {
  /** Patterns of names of faults. Default: all. */
  readonly faults?: readonly string[]
  /** A built checkout of kpng: the faults in its code are planted too. Default: none, only what is laid over the proxy. */
  readonly checkout?: string | undefined
}

/** Cases in which all kinds of addresses are served, and some that change. */
const casesForAll = [
  'cluster-ip',
  'external-*',
  'load-balancer-vip',
  'node-port',
  'endpoints-come-and-go',
  'blue-green',
]

interface Planted {
  readonly name: string
  readonly title: string
  readonly only: readonly string[]
  /** Returns the cells that show the fault, or other words for it. */
  find(): Promise<readonly string[]>
}

/** Plants fault after fault and prints what the kit found. Resolves with whether it found all of them. */
export async function runPlanted(options: PlantedOptions): Promise<boolean> {
  const { log, faults: patterns = [], checkout, only = [] } = options
  const copy = checkout === undefined ? undefined : new FaultyCopy(checkout)
  try {
    const all = [...overFaults(options), ...(copy ? codeFaults(options, copy) : [])]
    const wanted = all.filter(({ name }) => patterns.length === 0 || matchesAny(patterns, name))
    if (wanted.length === 0) throw new KpngError('usage', `No fault is called ${patterns.join(' or ')}.`)
    const cases = only.length > 0 ? only : [...new Set(wanted.flatMap((fault) => fault.only))]
    const { passed, results } = await runConformance({ ...options, log: () => {}, only: cases })
    if (!passed)
      throw new KpngError('refused', `Without any fault it is not right either: ${failuresIn(results).join(', ')}.`)
    let found = 0
    for (const fault of wanted) {
      const seen = await foundOf(fault, options)
      if (seen.length > 0) found++
      log(`${seen.length > 0 ? '✓' : '✗'} ${fault.name}: ${fault.title}: ${seen.slice(0, 3).join(', ') || 'not found'}`)
    }
    log(`${found} of ${wanted.length} faults were found.`)
    return found === wanted.length
  } finally {
    copy?.remove()
  }
}

async function foundOf(fault: Planted, { signal }: PlantedOptions): Promise<readonly string[]> {
  try {
    return await fault.find()
  } catch (error) {
    if (signal?.aborted || (error instanceof KpngError && error.code === 'usage')) throw error
    // A proxy that does not start is seen too.
    return [messageOf(error).split('\n')[0]?.slice(0, 100) ?? '']
  }
}

function overFaults(options: PlantedOptions): Planted[] {
  const only = options.only?.length ? options.only : casesForAll
  return laidOver.map((fault) => ({
    ...{ name: fault.name, title: fault.title, only },
    async find() {
      const { passed, results, notes } = await runConformance({ ...options, log: () => {}, only, fault })
      return passed ? [] : [...failuresIn(results), ...notes]
    },
  }))
}

/** kpng's nftables backend has them. Short waits and one family are enough. */
function codeFaults(options: PlantedOptions, copy: FaultyCopy): Planted[] {
  return faultsIn(options.checkout ?? '').map((fault, index) => ({
    name: `code-${index + 1}`,
    title: fault.name,
    only: fault.only,
    async find() {
      const proxy = proxyNamed('nft', copy.kpng, 'manifests')
      const quick = { families: ['IPv4'], settleMs: 300, programTimeoutMs: 30_000 } as const
      const run = () => runConformance({ ...options, ...quick, proxy, only: fault.only, log: () => {} })
      const report = await copy.with(fault, run)
      if (report !== 'not applied') return failuresIn(report.results)
      options.log(`The text of ${fault.file} in which "${fault.name}" is planted is not there once.`)
      return []
    },
  }))
}

const failuresIn = (results: readonly CellResult[]): string[] => results.filter(isFailure).map(({ id }) => id)
