import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Log } from '@kpng/api'

/**
 * Wakes up whoever waits when something near a path may have changed. Watched are folders, never the file: a rename puts another
 * file in its place (editors, `mv`) and a ConfigMap swaps a link beside it, and a watch on the file would stay with the old one.
 * Not every file system tells about changes, so there is a poll too.
 */
export class ChangeHints {
  readonly #folders: readonly string[]
  readonly #pollIntervalMs: number
  readonly #log: Log
  readonly #watchers = new Map<string, { readonly watcher: FSWatcher; readonly identity: string }>()
  #hinted = false
  #wake: (() => void) | undefined
  #complained = false

  constructor(path: string, pollIntervalMs: number, log: Log) {
    // For a folder, the one above tells when the folder itself (or a link in its place) is exchanged.
    this.#folders = [path, dirname(path)]
    this.#pollIntervalMs = pollIntervalMs
    this.#log = log
  }

  /** Resolves when there is a hint (also one that came since the last call), when it is time to look anyway, or at the end. */
  async wait(signal: AbortSignal): Promise<void> {
    await this.#watchFolders()
    if (this.#hinted || signal.aborted) {
      this.#hinted = false
      return
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, this.#pollIntervalMs)
      signal.addEventListener('abort', resolve as () => void, { once: true })
      this.#wake = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', resolve as () => void)
        resolve()
      }
    })
    this.#wake?.()
    this.#wake = undefined
    this.#hinted = false
  }

  close(): void {
    for (const { watcher } of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  /** A folder that was deleted and made again is another folder, and its old watch is deaf. */
  async #watchFolders(): Promise<void> {
    for (const folder of this.#folders) {
      const identity = await identityOfFolder(folder)
      const known = this.#watchers.get(folder)
      if (known && known.identity === identity) continue
      known?.watcher.close()
      this.#watchers.delete(folder)
      if (identity !== undefined) this.#watch(folder, identity)
    }
  }

  #watch(folder: string, identity: string): void {
    try {
      const watcher = watch(folder, { persistent: true }, () => this.#hint())
      watcher.on('error', () => {
        watcher.close()
        this.#watchers.delete(folder)
      })
      this.#watchers.set(folder, { watcher, identity })
      // What happened before the watch began is not told by it.
      this.#hinted = true
    } catch (error) {
      if (this.#complained) return
      this.#complained = true
      this.#log.detail(1, 'Cannot be told of changes and looks for them instead', { folder, error })
    }
  }

  #hint(): void {
    this.#hinted = true
    this.#wake?.()
  }
}

/** Inode numbers are used again, so the time of birth is part of it. */
async function identityOfFolder(path: string): Promise<string | undefined> {
  try {
    const stats = await stat(path, { bigint: true })
    return stats.isDirectory() ? `${stats.dev}:${stats.ino}:${stats.birthtimeNs}` : undefined
  } catch {
    return undefined
  }
}
