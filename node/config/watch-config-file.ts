import { type FSWatcher, watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { type Log, messageOf } from '@kpng/api'

interface WatchConfigFileOptions {
  readonly path: string
  /** Called once, when the file says something else than it did at the start. kube-proxy exits then, and is started again. */
  readonly onChange: () => void
  readonly log: Log
  /** Ends it. */
  readonly signal: AbortSignal
  /** How often to look where the file system does not tell of changes. Default 10,000. */
  readonly pollIntervalMs?: number
  /** How long the file must be left alone before it is compared, since writers empty a file first. Default 100. */
  readonly quietMs?: number
}

/**
 * Waits for a change of the configuration file, from the time it resolves on. The folder is watched, never the file: an editor puts
 * another file in its place, and a ConfigMap swaps a link beside it. A file that is gone for a while, or is written again as it
 * was, is no change.
 */
export async function watchConfigFile(options: WatchConfigFileOptions): Promise<void> {
  const { path, onChange, log, signal, pollIntervalMs = 10_000, quietMs = 100 } = options
  const before = await readFile(path)
  if (signal.aborted) return
  let comparing: NodeJS.Timeout | undefined
  let watcher: FSWatcher | undefined
  let ended = false
  const end = () => {
    ended = true
    clearTimeout(comparing)
    clearInterval(poll)
    watcher?.close()
    signal.removeEventListener('abort', end)
  }
  const compare = async () => {
    // Not there right now: between the two steps of a swap.
    const now = await readFile(path).catch(() => undefined)
    if (ended || now === undefined || now.equals(before)) return
    log.info('The configuration file has changed', { path })
    end()
    onChange()
  }
  const look = () => {
    clearTimeout(comparing)
    comparing = setTimeout(() => void compare(), quietMs)
    comparing.unref()
  }
  const poll = setInterval(look, pollIntervalMs)
  poll.unref()
  signal.addEventListener('abort', end, { once: true })
  try {
    watcher = watch(dirname(path), { persistent: false }, look)
    watcher.on('error', () => watcher?.close())
  } catch (error) {
    log.detail(1, 'Cannot be told of changes and looks for them instead', { path, error: messageOf(error) })
  }
  // What happened between the read and the watch is not told by it.
  look()
}
