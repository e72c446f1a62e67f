import type { ChangeRange } from './history.js'
import type { Store } from './store.js'

/**
 * Tells what each change of a store changed, from now on and once it is complete. Undefined: too much changed at once to be known. Returns
 * the function that ends it.
 */
export function followStore(store: Store, listener: (range: ChangeRange | undefined) => void): () => void {
  let bookmark = store.synced ? store.bookmark() : undefined
  const leave = store.onChange(() => {
    if (!store.synced || bookmark?.revision === store.revision) return
    const before = bookmark
    bookmark = store.bookmark()
    if (!before) return
    const range = store.changesSince(before)
    store.release(before)
    listener(range)
  })
  return () => {
    leave()
    if (bookmark) store.release(bookmark)
    bookmark = undefined
  }
}
