import type { SourceStatus, WatchStatus } from '@kpng/client'

/** How up to date the state is that is served. Times are ISO 8601. */
export interface SourceReport {
  readonly stale: boolean
  /** What is stale, and since when. */
  readonly reason?: string
  /** When the state was saved that is served now, while it comes from the state cache. */
  readonly stateCacheSavedAt?: string
  /** By name: a resource of the API server, or `core`. */
  readonly watches: { readonly [name: string]: WatchReport }
}

export interface WatchReport {
  readonly connected: boolean
  /** Since when it is connected, or is not. */
  readonly since: string
  /** When the last event, bookmark or answer came. Missing: nothing has come yet. */
  readonly lastEvent?: string
}

/** Undefined if the source watches nothing, such as a file. */
export function sourceReport(
  { watches, stateCache }: SourceStatus,
  nowMs = performance.now(),
  nowUnixMs = Date.now(),
): SourceReport | undefined {
  const isoTime = (monotonicMs: number) => new Date(nowUnixMs - (nowMs - monotonicMs)).toISOString()
  const present = [...watches.values()].filter(({ isAbsent }) => !isAbsent)
  if (present.length === 0) return undefined
  const savedAt = stateCache?.savedAtMs === undefined ? undefined : new Date(stateCache.savedAtMs).toISOString()
  const lost = present.filter((watch) => watch.isLost(nowMs))
  const reasons = [
    ...(savedAt === undefined
      ? []
      : [`The source has not answered yet: the state is that of the state cache, saved at ${savedAt}.`]),
    ...(lost.length === 0 ? [] : [notConnected(lost, isoTime)]),
    ...present.flatMap(({ name, serverStaleSinceMs }) =>
      serverStaleSinceMs === undefined
        ? []
        : [`The state of the ${name} is stale, as it said first at ${isoTime(serverStaleSinceMs)}.`],
    ),
  ]
  return {
    stale: reasons.length > 0,
    ...(reasons.length > 0 ? { reason: reasons.join(' ') } : {}),
    ...(savedAt === undefined ? {} : { stateCacheSavedAt: savedAt }),
    watches: Object.fromEntries(
      present.map(({ name, isConnected, changedAtMs, heardAtMs }) => [
        name,
        {
          connected: isConnected,
          since: isoTime(changedAtMs),
          ...(heardAtMs === undefined ? {} : { lastEvent: isoTime(heardAtMs) }),
        },
      ]),
    ),
  }
}

function notConnected(lost: readonly WatchStatus[], isoTime: (ms: number) => string): string {
  const since = Math.min(...lost.map(({ changedAtMs }) => changedAtMs))
  return `Not connected since ${isoTime(since)}: ${lost.map(({ name }) => name).join(', ')}.`
}

/** Lines for /statusz. */
export function sourceLines(report: SourceReport | undefined): { readonly [name: string]: string | boolean } {
  if (!report) return {}
  const lines: { [name: string]: string | boolean } = { Stale: report.reason ?? false }
  for (const [name, { connected, since, lastEvent = 'never' }] of Object.entries(report.watches)) {
    lines[`Source ${name}`] = `${connected ? 'connected' : 'not connected'} since ${since}, last event ${lastEvent}`
  }
  return lines
}
