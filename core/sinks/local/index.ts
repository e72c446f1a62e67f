import type { ChangeSet, ChangeSetSource } from '@kpng/client'
import type { Store } from '../../store/index.js'
import { NodeWatch, nextChangeSet } from '../../view/index.js'

/** The change sets of a node straight from the store of this process: the same as over gRPC, without encoding anything. */
export function changeSetsOf(store: Store): ChangeSetSource {
  return async function* (request, signal): AsyncGenerator<ChangeSet> {
    const watch = new NodeWatch(store, request)
    while (!signal.aborted) {
      try {
        yield await nextChangeSet(store, watch, signal)
      } catch (error) {
        if (signal.aborted) return
        throw error
      }
    }
  }
}
