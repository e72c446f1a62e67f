import { setTimeout as sleep } from 'node:timers/promises'
import { KpngError, type Log, messageOf } from '@kpng/api'
import { keptKeys } from '../../kubernetes/index.js'
import type { Store } from '../../store/index.js'
import { internTable } from '../intern.js'
import { Skips } from '../skips.js'
import { ChangeHints } from './change-hints.js'
import type { Skipped } from './content.js'
import { FileContents } from './file-contents.js'
import { type Listing, listFiles, sameListing } from './listing.js'
import { mergeContents } from './merge.js'

export interface WatchFileOptions {
  /** A file, or a folder whose *.yaml, *.yml and *.json files are read (not hidden ones, not those in folders below). */
  readonly path: string
  readonly store: Store
  readonly log: Log
  /** Where bad items are logged and counted. Default: one of its own. */
  readonly skips?: Skips
  /** Ends it. */
  readonly signal: AbortSignal
  /** Which proxy manifests are read for; default: the cluster's default one. State files are taken as they are. */
  readonly serviceProxyName?: string
  /** Globs of the label and annotation keys of manifests that are passed on, as in the kube source. Default: none. */
  readonly serviceLabels?: readonly string[]
  readonly serviceAnnotations?: readonly string[]
  readonly nodeLabels?: readonly string[]
  readonly nodeAnnotations?: readonly string[]
  /** How often to look for changes that nobody told of. Default 1000. */
  readonly pollIntervalMs?: number
  /** How long a file must be left alone before it is read. Default 50. */
  readonly settleMs?: number
}

/** After so many rounds a file that is written all the time is read nevertheless. */
const mostSettleRounds = 20

/**
 * Keeps the store equal to what the files say, until the signal is aborted. Rejects when there is nothing good to begin with;
 * later a mistake is logged and the last good state stays.
 */
export async function watchFile(options: WatchFileOptions): Promise<void> {
  const { path, signal, log } = options
  const source = new FileSource(options)
  await source.start()
  const hints = new ChangeHints(path, options.pollIntervalMs ?? 1000, log)
  try {
    while (!signal.aborted) {
      await hints.wait(signal)
      if (!signal.aborted) await source.look(signal)
    }
  } finally {
    hints.close()
  }
}

class FileSource {
  readonly #options: WatchFileOptions
  readonly #settleMs: number
  readonly #skips: Skips
  readonly #contents: FileContents
  #listing: Listing | undefined
  #skippedObjects: ReadonlySet<string> = new Set()
  #gone = false

  constructor(options: WatchFileOptions) {
    this.#options = options
    this.#settleMs = options.settleMs ?? 50
    this.#skips = options.skips ?? new Skips(options.log)
    const manifests = {
      serviceProxyName: options.serviceProxyName ?? '',
      intern: internTable(),
      keptOfServices: keptKeys(options.serviceLabels, options.serviceAnnotations),
      keptOfNodes: keptKeys(options.nodeLabels, options.nodeAnnotations),
    }
    this.#contents = new FileContents(manifests, this.#settleMs * 2, options.log)
  }

  async start(): Promise<void> {
    const { path, log } = this.#options
    const listing = await this.#list()
    if (listing instanceof KpngError) throw listing
    const settled = await this.#contents.update(listing)
    const error = this.#contents.error
    if (error !== undefined && this.#contents.contents.length === 0) throw error
    this.#contents.complain()
    if (settled) this.#listing = listing
    if (listing.size === 0) log.warn('The folder has no *.yaml, *.yml or *.json file: the state is empty', { path })
    this.#publish()
  }

  /** Reads what changed, once it has been left alone for a while. */
  async look(signal: AbortSignal): Promise<void> {
    const now = await this.#list()
    if (!(now instanceof KpngError) && sameListing(now, this.#listing)) return this.#noteBack()
    const listing = await this.#settled(now, signal)
    if (signal.aborted) return
    if (listing instanceof KpngError) return this.#noteGone(listing)
    this.#noteBack()
    // What changed while it was read is not noted as read, and so is looked at again.
    this.#listing = (await this.#contents.update(listing)) ? listing : undefined
    this.#contents.complain()
    this.#publish()
  }

  async #settled(first: Listing | KpngError, signal: AbortSignal): Promise<Listing | KpngError> {
    let listing = first
    for (let round = 0; round < mostSettleRounds && !signal.aborted; round++) {
      await sleep(this.#settleMs)
      const before = listing
      listing = await this.#list()
      const gone = before instanceof KpngError && listing instanceof KpngError
      if (gone) return listing
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
      const missing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      const what = missing ? 'does not exist. Check the path' : `cannot be read: ${messageOf(error)}`
      return new KpngError('unavailable', `The state file or folder ${path} ${what}.`, { cause: error })
    }
  }

  #noteGone(error: KpngError): void {
    if (!this.#gone) this.#options.log.error('The files are gone. The last good state stays served', { error })
    this.#gone = true
    this.#listing = undefined
  }

  #noteBack(): void {
    if (this.#gone) this.#options.log.info('The files are there again', { path: this.#options.path })
    this.#gone = false
  }

  #publish(): void {
    const { store, log, path } = this.#options
    const { skipped, ...state } = mergeContents(this.#contents.contents)
    this.#report(skipped)
    const before = store.revision
    const revision = store.update((transaction) => {
      transaction.replaceAll(state)
      transaction.setSynced('services', 'endpoints', 'nodes')
    })
    if (revision !== before) log.detail(2, 'Read the state', { path, services: state.services.length, revision })
  }

  /** Each reason is said once; one that no longer holds is forgotten, so that it is said again when it comes back. */
  #report(skipped: readonly Skipped[]): void {
    const reasons = new Map<string, string[]>()
    for (const { object, reason } of skipped) {
      const said = reasons.get(object)
      if (said) said.push(reason)
      else reasons.set(object, [reason])
    }
    for (const object of this.#skippedObjects) if (!reasons.has(object)) this.#skips.forget(object)
    for (const [object, said] of reasons) this.#skips.reading(object, (report) => said.forEach(report))
    this.#skippedObjects = new Set(reasons.keys())
  }
}
