import type { ChangeSet, ChangeSetSource } from '@kpng/client'
import type { Store } from '../../store/index.js'
import { View } from '../../view/index.js'

/** The change sets of a node straight from the store of this process: the same as over gRPC, without encoding anything. */
export function changeSetsOf(store: Store, view = new View(store)): ChangeSetSource {
  return async function* (request, signal): AsyncGenerator<ChangeSet> {
    const watch = view.watchNode(request)
    const close = () => watch.close(signal.reason)
    signal.addEventListener('abort', close, { once: true })
    try {
      while (!signal.aborted) yield await watch.next()
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      signal.removeEventListener('abort', close)
      watch.close()
    }
  }
}
