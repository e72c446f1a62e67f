import type { Readings } from '@kpng/node'
import { type Context, given } from './context.js'

/** The numbers of the source, for metrics. Those of a source that is elsewhere are left out: a constant 0 would be a lie. */
export function sourceReadings({ events, kube, state, source }: Context): Readings {
  return {
    source,
    ...given('apiEvents', kube && (() => events.apiEvents)),
    ...given('skippedObjects', state && (() => state.skips.total)),
    ...given('storeRevision', state && (() => state.store.revision)),
  }
}
