import { type FileHandle, open } from 'node:fs/promises'
import { KpngError, type Log, localv1, messageOf } from '@kpng/api'
import { deleteLine, type RecordHead, recordVersion, setLine } from '../../record/line.js'
import type { Store } from '../../store/index.js'
import { View } from '../../view/index.js'
import type { ChangeSet } from '../api/change-set.js'
import { ClusterItems } from '../api/cluster-watch.js'

export interface RecordOptions {
  readonly store: Store
  /** The file. What is in it is replaced. */
  readonly path: string
  readonly log: Log
  /** Ends it, after the change set that is being written. */
  readonly signal: AbortSignal
}

/** Writes the state of the cluster and then every change of it to a file, with their times, until the signal is aborted. */
export async function recordChanges({ store, path, log, signal }: RecordOptions): Promise<void> {
  const started = performance.now()
  const watch = new ClusterItems(new View(store)).watch({ extraSets: [localv1.Set.GLOBAL_SERVICE_CIDRS] })
  const close = () => watch.close(signal.reason)
  signal.addEventListener('abort', close, { once: true })
  let file: FileHandle | undefined
  try {
    // A record says as much about the cluster as those may read who may read its Services.
    file = await open(path, 'w', 0o600)
    const head: RecordHead = { kpng: 'record', version: recordVersion, startedAt: new Date().toISOString() }
    await writeLines(file, [JSON.stringify(head)])
    while (!signal.aborted) {
      const changes = await next(watch, signal)
      if (!changes) return
      await writeLines(file, linesOf(changes, Math.round(performance.now() - started)))
      log.detail(2, 'Recorded a change', { path, revision: changes.revision })
    }
  } catch (error) {
    throw new KpngError('unavailable', `${path} cannot be written: ${messageOf(error)}.`, { cause: error })
  } finally {
    signal.removeEventListener('abort', close)
    watch.close()
    await file?.close()
  }
}

/** Undefined when it was ended. */
async function next(watch: { next(): Promise<ChangeSet> }, signal: AbortSignal): Promise<ChangeSet | undefined> {
  try {
    return await watch.next()
  } catch (error) {
    if (signal.aborted) return undefined
    throw error
  }
}

function* linesOf({ reset, sets, deletes }: ChangeSet, atMs: number): Generator<string> {
  if (reset) yield JSON.stringify({ op: 'reset' })
  for (const { set, path, message } of sets) yield setLine(set, path, message)
  for (const { set, path } of deletes) yield deleteLine(set, path)
  yield JSON.stringify({ op: 'sync', atMs })
}

/** The whole state of a large cluster is hundreds of megabytes: it is written in parts. */
const partLength = 1 << 20

async function writeLines(file: FileHandle, lines: Iterable<string>): Promise<void> {
  let part = ''
  for (const line of lines) {
    part += `${line}\n`
    if (part.length < partLength) continue
    await file.appendFile(part)
    part = ''
  }
  await file.appendFile(part)
}
