import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Log } from '@kpng/api'

/**
 * Reports when something near a path may have changed. It watches folders, never the file itself: a rename puts another file in its
 * place (editors, `mv`), a ConfigMap swaps a link beside it, and a watch on the file would stay with the old one. Not every
 * file system reports changes, so it also polls.
 */
export class FolderWatch {
  readonly #folders: readonly string[]
  readonly #pollIntervalMs: number
  readonly #log: Log
  readonly #watchers = new Map<string, { readonly watcher: FSWatcher; readonly identity: string }>()
  #changed = false
  #wake: (() => void) | undefined
  #hasLoggedFailure = false

  constructor(path: string, pollIntervalMs: number, log: Log) {
    // If the path is a folder, the folder above reports that it (or a link in its place) was replaced.
    this.#folders = [path, dirname(path)]
    this.#pollIntervalMs = pollIntervalMs
    this.#log = log
  }

  /** Resolves when something may have changed since the last call, when the poll interval is over, or when the signal is aborted. */
  async nextChange(signal: AbortSignal): Promise<void> {
    await this.#watchFolders()
    if (!this.#changed && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', wake)
          this.#wake = undefined
          resolve()
        }
        const timer = setTimeout(wake, this.#pollIntervalMs)
        signal.addEventListener('abort', wake, { once: true })
        this.#wake = wake
      })
    }
    this.#changed = false
  }

  close(): void {
    for (const { watcher } of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  /** A folder that was deleted and created again is a new folder; the old watch does not see it. */
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
      const watcher = watch(folder, { persistent: true }, () => this.#noteChange())
      watcher.on('error', () => {
        watcher.close()
        this.#watchers.delete(folder)
      })
      this.#watchers.set(folder, { watcher, identity })
      // A watch does not report what happened before it began.
      this.#changed = true
    } catch (error) {
      if (this.#hasLoggedFailure) return
      this.#hasLoggedFailure = true
      this.#log.detail(1, 'Cannot watch the folder; polling for changes instead', { folder, error })
    }
  }

  #noteChange(): void {
    this.#changed = true
    this.#wake?.()
  }
}

/** Inode numbers are reused, so the birth time is part of the identity. */
async function identityOfFolder(path: string): Promise<string | undefined> {
  try {
    const stats = await stat(path, { bigint: true })
    return stats.isDirectory() ? `${stats.dev}:${stats.ino}:${stats.birthtimeNs}` : undefined
  } catch {
    return undefined
  }
}
