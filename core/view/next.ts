import type { Store } from '../store/index.js'
import type { ChangeSet, Watch } from './change-set.js'
import type { SetItem } from './items.js'

/** Waits for a watch to have something to say. Rejects with the signal's reason when it is aborted. */
export function nextChangeSet<Item extends SetItem>(
  store: Store,
  watch: Watch<Item>,
  signal: AbortSignal,
): Promise<ChangeSet<Item>> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const first = watch.poll()
    if (first) return resolve(first)
    const end = () => {
      stopListening()
      signal.removeEventListener('abort', abort)
    }
    const abort = () => {
      end()
      reject(signal.reason)
    }
    const stopListening = store.onChange(() => {
      let next: ChangeSet<Item> | undefined
      try {
        next = watch.poll()
      } catch (error) {
        end()
        return reject(error)
      }
      if (!next) return
      end()
      resolve(next)
    })
    signal.addEventListener('abort', abort, { once: true })
  })
}
