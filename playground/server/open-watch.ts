import type { ServerResponse } from 'node:http'
import { resourceOf } from '../kinds/kind.js'
import { expired, tooLargeResourceVersion } from '../status/status.js'
import type { Store } from '../storage/store.js'
import { forbiddenValue } from '../validation/causes.js'
import type { Filter } from './filter.js'
import { invalidListOptions, versionOf } from './list.js'
import type { Representation } from './representation.js'
import type { Route } from './route.js'
import { Watch } from './watch.js'

/** How a server treats `sendInitialEvents`: as one that has it, refuses it (1.27 and later with it switched off), or does not know it. */
export type StreamingLists = 'supported' | 'refused' | 'ignored'

export interface WatchSettings {
  streamingLists: StreamingLists
  bookmarks: boolean
  bookmarkIntervalMs: number
  /** A watch that starts at an expired version: an ERROR event in a 200 answer, as real servers do, or a 410 answer. */
  expiredWatch: 'event' | 'status'
  /** New watches get their headers and then nothing. */
  hang: boolean
}

/** Opens a watch, or throws why not. */
export function openWatch(
  store: Store,
  route: Route,
  query: URLSearchParams,
  filter: Filter,
  form: Representation,
  response: ServerResponse,
  settings: WatchSettings,
): Watch {
  const version = versionOf(query.get('resourceVersion'))
  const streaming = streamsInitialEvents(query, settings.streamingLists)
  if (version !== undefined && version > store.revision) throw tooLargeResourceVersion(version, store.revision)
  const bookmarks = settings.bookmarks && query.get('allowWatchBookmarks') === 'true'
  const watch = new Watch({ store, resource: resourceOf(route.kind), filter, form, response, bookmarks })
  if (settings.hang) watch.hang()
  const old = version !== undefined && version > 0 && version < store.compactedRevision
  const initial = streaming === true || (streaming === undefined && (version === undefined || version === 0))
  if (old && !initial) {
    const error = expired(`too old resource version: ${version} (${store.compactedRevision})`)
    if (settings.expiredWatch === 'status') throw error
    watch.start([])
    watch.fail(error)
    return watch
  }
  if (initial) watch.startWithState(streaming === true)
  else watch.start(store.since(version ?? store.revision))
  watch.schedule(Number(query.get('timeoutSeconds') ?? 0), settings.bookmarkIntervalMs)
  return watch
}

/** True: yes; false: explicitly not; undefined: the client (or this server) does not know the parameter. */
function streamsInitialEvents(query: URLSearchParams, mode: StreamingLists): boolean | undefined {
  const asked = query.get('sendInitialEvents')
  if (asked === null || mode === 'ignored') return undefined
  const refuse = (field: string, why: string) => invalidListOptions(forbiddenValue(field, why))
  if (mode === 'refused') {
    throw refuse(
      'sendInitialEvents',
      'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled',
    )
  }
  const match = query.get('resourceVersionMatch')
  if (match !== 'NotOlderThan') {
    throw refuse('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')
  }
  if (asked === 'true' && query.get('allowWatchBookmarks') !== 'true') {
    throw refuse('allowWatchBookmarks', 'sendInitialEvents requires setting allowWatchBookmarks to true')
  }
  return asked === 'true'
}
