import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileAdvice, KpngError, type Log, messageOf } from '@kpng/api'
import type { FileContent, NamedContent } from './content.js'
import type { ManifestOptions } from './manifests.js'
import { readContent } from './read.js'

/** The files to read, sorted, each with its version: a text that changes when the file changes. */
export type Listing = ReadonlyMap<string, string>

/** Stands for the version of a file that exists but cannot be examined. Reading it gives the reason. */
const unknownVersion = ''

/**
 * The file itself, or the YAML and JSON files of a folder. Hidden files (editors and ConfigMap volumes use them) and folders
 * below are skipped, links are followed. Throws if the path does not exist.
 */
export async function listFiles(path: string): Promise<Listing> {
  const version = await versionOf(path)
  if (version !== undefined) return new Map([[path, version]])
  const names = (await readdir(path)).filter((name) => /^[^.].*\.(?:ya?ml|json)$/i.test(name)).sort()
  const files = new Map<string, string>()
  for (const name of names) {
    const file = join(path, name)
    const found = await versionOf(file).catch((error) => (isMissing(error) ? undefined : unknownVersion))
    if (found !== undefined) files.set(file, found)
  }
  return files
}

/** Undefined for a folder. */
async function versionOf(file: string): Promise<string | undefined> {
  const stats = await stat(file, { bigint: true })
  return stats.isDirectory() ? undefined : `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`
}

/** The file was deleted after the folder was read, or it is a link that leads nowhere. */
const isMissing = (error: NodeJS.ErrnoException): boolean => error.code === 'ENOENT' || error.code === 'ELOOP'

export const sameListing = (a: Listing, b: Listing | undefined): boolean =>
  a.size === b?.size && [...a].every(([file, version]) => b.get(file) === version)

interface KnownFile {
  /** The version that was read last, whether its content was good or bad. */
  readonly version: string
  /** The last good content. */
  readonly content: FileContent | undefined
  readonly error?: unknown
  /** Digest of the bad content, or the reason why it could not be read: the same mistake is logged once. */
  readonly mistake?: string
}

export interface FilesOptions {
  readonly manifests: ManifestOptions
  readonly log: Log
  /** How long to wait before a file with a mistake is read once more. */
  readonly rereadAfterMs: number
  /** Default: the clock's. */
  readonly pause?: (ms: number) => Promise<unknown>
}

/** The files of a path, each with its last good content. A file is read again if its version changed or if it could not be read. */
export class Files {
  readonly #known = new Map<string, KnownFile>()
  readonly #options: FilesOptions
  readonly #mistakes: (() => void)[] = []

  constructor(options: FilesOptions) {
    this.#options = options
  }

  /**
   * Reads the files that differ from what is known.
   * @returns whether any content changed, and whether everything is up to date: a file that changed while it was read, or that
   *   could not be read, is not. Then call it again.
   */
  async update(listing: Listing): Promise<{ changed: boolean; upToDate: boolean }> {
    let changed = false
    let upToDate = true
    for (const file of [...this.#known.keys()]) {
      if (!listing.has(file)) changed = this.#known.delete(file)
    }
    for (const [file, version] of listing) {
      const known = this.#known.get(file)
      if (known?.version === version && version !== unknownVersion) continue
      upToDate = (await this.#read(file, version)) && upToDate
      changed ||= this.#known.get(file)?.content !== known?.content
    }
    return { changed, upToDate }
  }

  /** Logs the mistakes that `update` found. At start the caller throws `error` instead if nothing can be served. */
  logMistakes(): void {
    for (const log of this.#mistakes.splice(0)) log()
  }

  /** The good contents, sorted by name. */
  get contents(): NamedContent[] {
    return [...this.#known]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([file, { content }]) => (content ? [{ file, content }] : []))
  }

  /** The error of the first bad file. */
  get error(): unknown {
    return [...this.#known.values()].find(({ error }) => error !== undefined)?.error
  }

  /** @returns whether what is known of the file is up to date now */
  async #read(file: string, version: string): Promise<boolean> {
    const known = this.#known.get(file)
    try {
      const content = await this.#readTwice(file)
      // If it changed meanwhile, parts of two versions may have been read.
      if ((await versionOf(file).catch(() => undefined)) !== version) return false
      if (known?.error !== undefined) this.#options.log.info('The file is good again', { file })
      this.#known.set(file, { version, content })
      return true
    } catch (error) {
      const isBad = error instanceof BadContent
      this.#noteMistake(file, isBad ? version : unknownVersion, isBad ? error.cause : error, error)
      return isBad
    }
  }

  #noteMistake(file: string, version: string, error: unknown, reason: unknown): void {
    const known = this.#known.get(file)
    const mistake = messageOf(reason)
    if (known?.mistake !== mistake) {
      const effect = known?.content ? 'Its last good content stays in use' : 'It is skipped'
      this.#mistakes.push(() => this.#options.log.error(`A file cannot be used. ${effect}`, { file, error }))
    }
    this.#known.set(file, { version, content: known?.content, error, mistake })
  }

  /** A mistake may be a file that is being written right now, so it counts only if it is still there a moment later. */
  async #readTwice(file: string): Promise<FileContent> {
    const { manifests, rereadAfterMs, pause = sleep } = this.#options
    try {
      return readContent(file, await readText(file), manifests)
    } catch {
      await pause(rereadAfterMs)
    }
    const text = await readText(file)
    try {
      return readContent(file, text, manifests)
    } catch (error) {
      throw new BadContent(createHash('sha256').update(text).digest('hex'), { cause: error })
    }
  }
}

/** The file was read and its content is wrong. The message is a digest of the content, the cause is the error. */
class BadContent extends Error {}

export async function readText(file: string): Promise<string> {
  try {
    const text = await readFile(file, 'utf8')
    return text.startsWith('\ufeff') ? text.slice(1) : text
  } catch (error) {
    throw new KpngError('unavailable', `${file} cannot be read: ${messageOf(error)}. ${fileAdvice(error)}`.trim(), {
      cause: error,
    })
  }
}
