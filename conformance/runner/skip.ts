import { isKpng } from '../deviations/index.js'
import type { Settings } from '../options.js'
import type { PlacedCell } from './rounds.js'

/** Why a cell cannot be measured in this run. Undefined if it can. */
export function skipReason(
  { cell, case: one }: PlacedCell,
  { settings, noSctp }: { readonly settings: Settings; readonly noSctp: string | undefined },
): string | undefined {
  const { feed, backend, specialised } = settings
  const { manifestsOnly, kpngOnly, flags, onBothNodes } = one
  if (cell.to.protocol === 'SCTP' && noSctp !== undefined) return noSctp
  if (manifestsOnly !== undefined && feed !== 'manifests') return manifestsOnly
  if (kpngOnly !== undefined && !isKpng(backend)) return kpngOnly
  if (one.specialised && specialised === undefined) return 'no specialised proxy was given'
  if (flags && !flags.knownTo.includes(backend ?? '')) return `the proxy has no ${flags.words.join(' ')}`
  if (onBothNodes && !settings.proxy.some((part) => part.includes('{node}'))) {
    return 'the proxy command has no {node}, so it cannot run on node-b'
  }
  const needsApiServer = one.steps.some(({ actions = [] }) => actions.some(({ kind }) => kind === 'api-server-away'))
  return needsApiServer && feed === 'manifests' ? 'objects come from manifests, not from an API server' : undefined
}
