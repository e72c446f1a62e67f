import { setTimeout as sleep } from 'node:timers/promises'
import { KpngError, type Log, messageOf } from '@kpng/api'
import { internTable, keptKeys } from '../../kubernetes/index.js'
import type { Store } from '../../store/index.js'
import { Skips } from '../skips.js'
import { mergeContents, type Skipped } from './content.js'
import { Files, type Listing, listFiles, sameListing } from './files.js'
import { FolderWatch } from './folder-watch.js'

export interface WatchFileOptions {
  /** A file, or a folder whose *.yaml, *.yml and *.json files are read, except hidden files and files in folders below. */
  readonly path: string
  readonly store: Store
  readonly log: Log
  /** Logs and counts the items that are skipped. Default: one of its own. */
  readonly skips?: Skips
  /** Aborting it ends the watch. */
  readonly signal: AbortSignal
  /** The proxy that manifests are read for. Default: the cluster's default proxy. State files are read for any proxy. */
  readonly serviceProxyName?: string
  /** Globs of the label and annotation keys of manifests that are passed on, as in the kube source. Default: none. */
  readonly serviceLabels?: readonly string[]
  readonly serviceAnnotations?: readonly string[]
  readonly nodeLabels?: readonly string[]
  readonly nodeAnnotations?: readonly string[]
  /** How often to look for changes that the file system does not report. Default 1000. */
  readonly pollIntervalMs?: number
  /** How long a file must stay unchanged before it is read. Default 50. */
  readonly settleMs?: number
}

/** A file that never stays unchanged is read after this many rounds of `settleMs`. */
const mostSettleRounds = 20

/**
 * Keeps the store equal to what the files say, until the signal is aborted. Rejects if nothing can be read at the start. A mistake
 * that is made later is logged, and the last good state stays in use.
 * @param pause for tests; default: the clock's
 */
export async function watchFile(
  options: WatchFileOptions,
  pause: (ms: number) => Promise<unknown> = sleep,
): Promise<void> {
  const { path, signal, log } = options
  const source = new FileSource(options, pause)
  await source.start()
  const folder = new FolderWatch(path, options.pollIntervalMs ?? 1000, log)
  try {
    while (!signal.aborted) {
      await folder.nextChange(signal)
      if (!signal.aborted) await source.look(signal)
    }
  } finally {
    folder.close()
  }
}

class FileSource {
  readonly #options: WatchFileOptions
  readonly #pause: (ms: number) => Promise<unknown>
  readonly #settleMs: number
  readonly #skips: Skips
  readonly #files: Files
  /** What was read last; undefined if something must be read again. */
  #listing: Listing | undefined
  #skippedObjects: ReadonlySet<string> = new Set()
  #isMissing = false

  constructor(options: WatchFileOptions, pause: (ms: number) => Promise<unknown>) {
    this.#options = options
    this.#pause = pause
    this.#settleMs = options.settleMs ?? 50
    this.#skips = options.skips ?? new Skips(options.log)
    const manifests = {
      serviceProxyName: options.serviceProxyName ?? '',
      intern: internTable(),
      keptOfServices: keptKeys(options.serviceLabels, options.serviceAnnotations),
      keptOfNodes: keptKeys(options.nodeLabels, options.nodeAnnotations),
    }
    this.#files = new Files({ manifests, log: options.log, rereadAfterMs: this.#settleMs * 2, pause })
  }

  async start(): Promise<void> {
    const { path, log } = this.#options
    const { listing, upToDate } = await this.#readAll()
    const { error } = this.#files
    if (error !== undefined && this.#files.contents.length === 0) throw error
    this.#files.logMistakes()
    if (upToDate) this.#listing = listing
    if (listing.size === 0) log.warn('The folder has no *.yaml, *.yml or *.json file: the state is empty', { path })
    this.#publish()
  }

  /** A file that changes while it is read is read again, so that the state does not begin without it. */
  async #readAll(): Promise<{ listing: Listing; upToDate: boolean }> {
    for (let round = 1; ; round++) {
      const listing = await this.#list()
      if (listing instanceof KpngError) throw listing
      const { upToDate } = await this.#files.update(listing)
      if (upToDate || this.#files.error !== undefined || round === mostSettleRounds) return { listing, upToDate }
      await this.#pause(this.#settleMs)
    }
  }

  /** Reads the files that changed, once they stay unchanged for a while. */
  async look(signal: AbortSignal): Promise<void> {
    const now = await this.#list()
    if (!(now instanceof KpngError) && sameListing(now, this.#listing)) return this.#notePresent()
    const listing = await this.#settled(now, signal)
    if (signal.aborted) return
    if (listing instanceof KpngError) return this.#noteMissing(listing)
    this.#notePresent()
    const { changed, upToDate } = await this.#files.update(listing)
    this.#listing = upToDate ? listing : undefined
    this.#files.logMistakes()
    if (changed) this.#publish()
  }

  async #settled(first: Listing | KpngError, signal: AbortSignal): Promise<Listing | KpngError> {
    let listing = first
    for (let round = 0; round < mostSettleRounds && !signal.aborted; round++) {
      await this.#pause(this.#settleMs)
      const before = listing
      listing = await this.#list()
      const isMissing = before instanceof KpngError && listing instanceof KpngError
      if (isMissing) return listing
      if (before instanceof KpngError || listing instanceof KpngError) continue
      if (sameListing(before, listing)) return listing
    }
    return listing
  }

  async #list(): Promise<Listing | KpngError> {
    const { path } = this.#options
    try {
      return await listFiles(path)
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      const what = isMissing ? 'does not exist. Check the path' : `cannot be read: ${messageOf(error)}`
      return new KpngError('unavailable', `The state file or folder ${path} ${what}.`, { cause: error })
    }
  }

  #noteMissing(error: KpngError): void {
    if (!this.#isMissing) {
      this.#options.log.error('The files cannot be found. The last good state stays in use', { error })
    }
    this.#isMissing = true
    this.#listing = undefined
  }

  #notePresent(): void {
    if (this.#isMissing) this.#options.log.info('The files are back', { path: this.#options.path })
    this.#isMissing = false
  }

  #publish(): void {
    const { store, log, path } = this.#options
    const { skipped, ...state } = mergeContents(this.#files.contents)
    this.#report(skipped)
    const before = store.revision
    const revision = store.update((transaction) => {
      transaction.replaceAll(state)
      transaction.setSynced('services', 'endpoints', 'nodes')
    })
    if (revision !== before) log.detail(2, 'Read the state', { path, services: state.services.length, revision })
  }

  /** Logs each reason once. A reason that no longer holds is forgotten, so that it is logged again if it comes back. */
  #report(skipped: readonly Skipped[]): void {
    const reasons = new Map<string, string[]>()
    for (const { object, reason } of skipped) {
      const known = reasons.get(object)
      if (known) known.push(reason)
      else reasons.set(object, [reason])
    }
    for (const object of this.#skippedObjects) if (!reasons.has(object)) this.#skips.forget(object)
    for (const [object, known] of reasons) this.#skips.reading(object, (report) => known.forEach(report))
    this.#skippedObjects = new Set(reasons.keys())
  }
}
