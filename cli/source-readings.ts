import type { Readings } from '@kpng/node'
import { type Context, given } from './context.js'

/** The numbers of the source, for metrics. If the source is another process they are left out: a constant 0 would be wrong. */
export function sourceReadings({ events, kube, state, source }: Context): Readings {
  return {
    source,
    ...given('apiEvents', kube && (() => events.apiEvents)),
    ...given('skippedObjects', state && (() => state.skips.total)),
    ...given('storeRevision', state && (() => state.store.revision)),
  }
}
