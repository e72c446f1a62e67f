import { type AgentStatus, printable, type SourceStatusAnswer, sourceStateOf, verdicts } from '@kpng/api'

/** Whether nobody needs to look: the last sync succeeded, and the state is up to date. */
export const isHealthy = ({ lastSync, source, core }: AgentStatus): boolean =>
  (source === undefined || sourceStateOf(source) === 'up to date') &&
  (core ? core.synced : lastSync !== undefined && lastSync.error === undefined)

/**
 * A status for people, on one screen.
 * @param asked who gave it: `the agent of worker-1, by its socket`
 */
export function statusText(status: AgentStatus, asked?: string): string {
  const { version, node, backend, startedAt, now, source, core, problems } = status
  const lines: [string, string][] = [
    ['kpng', `${version} on ${node}, ${backend ?? 'core'}, up ${ago(startedAt, now)}`],
    ...(asked === undefined ? [] : [['Asked', asked] as [string, string]]),
    ['State', source ? sourceText(source) : 'from a source that is not watched'],
    ...Object.entries(source?.watches ?? {}).map(([name, { connected, since, lastEvent }]): [string, string] => [
      `  ${name}`,
      `${connected ? 'connected' : 'NOT CONNECTED'} for ${ago(since, now)}, last event ${lastEvent ? `${ago(lastEvent, now)} ago` : 'never'}`,
    ]),
    ...(core ? coreLines(core, status) : nodeLines(status)),
    ['Skipped objects', String(status.skippedObjects)],
  ]
  const width = Math.max(...lines.map(([name]) => name.length))
  return [
    ...lines.map(([name, text]) => `${name.padEnd(width)}  ${printable(text)}`),
    ...(problems.length > 0
      ? ['', 'Not served', ...problems.map(({ service, problem }) => printable(`  ${service}: ${problem}`))]
      : []),
    '',
  ].join('\n')
}

function sourceText(source: SourceStatusAnswer): string {
  const state = sourceStateOf(source)
  if (state === 'stale') return `STALE: ${source.reason}`
  if (state === 'disconnected') return 'DISCONNECTED: changes do not arrive now'
  return state === 'never synced' ? 'NEVER SYNCED: waiting for the source' : state
}

function nodeLines(status: AgentStatus): [string, string][] {
  const { lastSync, now } = status
  return [
    ['Serves', `${status.services} services, ${status.endpoints} endpoints, ${status.frontends} frontends`],
    ...(status.verdicts ? [['Verdicts', verdictsText(status.verdicts)] as [string, string]] : []),
    ['Last sync', lastSync ? lastSyncText(lastSync, now) : 'none yet'],
    ['Syncs', `${status.syncs}, of everything ${status.fullSyncs}, failed ${status.failedSyncs}`],
  ]
}

/** The worst first. */
const verdictsText = (counts: NonNullable<AgentStatus['verdicts']>): string =>
  [...verdicts]
    .reverse()
    .flatMap((verdict) => (counts[verdict] ? [`${counts[verdict]} ${verdict}`] : []))
    .join(', ') || 'no Service'

function coreLines(
  { synced, revision, watchers }: NonNullable<AgentStatus['core']>,
  status: AgentStatus,
): [string, string][] {
  return [
    ['Cluster', `${status.services} services, ${status.endpoints} endpoints, revision ${revision}`],
    ['Complete', synced ? 'yes' : 'NO: the source has not been read completely yet'],
    ['Serves', `${watchers.local ?? 0} nodes, ${watchers.global ?? 0} relays`],
  ]
}

function lastSyncText(sync: NonNullable<AgentStatus['lastSync']>, now: string): string {
  const { at, durationMs, latencyMs, error, services, moreServices, full } = sync
  if (error !== undefined) return `FAILED ${ago(at, now)} ago: ${error}`
  const what = full ? 'everything' : `${services.length + moreServices} services`
  const latency = latencyMs === undefined ? '' : `, ${Math.round(latencyMs)} ms after the change`
  return `${ago(at, now)} ago, ${what} in ${durationMs.toFixed(1)} ms${latency}`
}

/** As kubectl writes ages: 45s, 12m, 3h, 8d. */
function ago(then: string, now: string): string {
  const seconds = Math.max(0, Math.round((Date.parse(now) - Date.parse(then)) / 1000))
  if (seconds < 120) return `${seconds}s`
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`
}
