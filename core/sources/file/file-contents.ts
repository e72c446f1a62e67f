import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { KpngError, type Log, messageOf } from '@kpng/api'
import type { FileContent } from './content.js'
import { type Listing, versionOf } from './listing.js'
import type { ManifestOptions } from './manifests.js'
import type { NamedContent } from './merge.js'
import { readContent } from './read-file.js'

interface KnownFile {
  /** The version that was last read, whether it was good or not. */
  version: string
  /** The last good content. */
  content: FileContent | undefined
  /** Digest of the content that was complained about. */
  bad: string | undefined
  error: unknown
}

/** The files of a path, each with its last good content. A file is read again only when its version changed. */
export class FileContents {
  readonly #known = new Map<string, KnownFile>()
  readonly #options: ManifestOptions
  readonly #rereadAfterMs: number
  readonly #log: Log
  readonly #complaints: (() => void)[] = []

  constructor(options: ManifestOptions, rereadAfterMs: number, log: Log) {
    this.#options = options
    this.#rereadAfterMs = rereadAfterMs
    this.#log = log
  }

  /** Reads what differs from what is known. Returns false when a file changed while it was read: then ask again. */
  async update(listing: Listing): Promise<boolean> {
    for (const file of [...this.#known.keys()]) if (!listing.has(file)) this.#known.delete(file)
    let settled = true
    for (const [file, version] of listing) {
      const known = this.#known.get(file)
      if (known?.version === version) continue
      settled = (await this.#read(file, version)) && settled
    }
    return settled
  }

  /** Logs what was wrong with the files. Apart from `update`, since at start the caller may throw the error instead. */
  complain(): void {
    for (const say of this.#complaints.splice(0)) say()
  }

  /** The good contents, sorted by name. */
  get contents(): NamedContent[] {
    return [...this.#known]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([file, { content }]) => (content ? [{ file, content }] : []))
  }

  /** The error of the first file that is bad. */
  get error(): unknown {
    return [...this.#known.values()].find(({ error }) => error !== undefined)?.error
  }

  async #read(file: string, version: string): Promise<boolean> {
    const known = this.#known.get(file) ?? { version: '', content: undefined, bad: undefined, error: undefined }
    try {
      const content = await this.#readTwice(file)
      // Changed while it was read: half of it may be from before.
      if ((await versionOf(file).catch(() => undefined)) !== version) return false
      if (known.error !== undefined) this.#log.info('The file is good again', { file })
      this.#known.set(file, { version, content, bad: undefined, error: undefined })
    } catch (error) {
      const digest = error instanceof BadContent ? error.digest : messageOf(error)
      const reason = error instanceof BadContent ? error.cause : error
      if (known.bad !== digest) {
        const kept = known.content ? 'Its last good content stays served' : 'Nothing of it is served'
        this.#complaints.push(() => this.#log.error(`A file cannot be used. ${kept}`, { file, error: reason }))
      }
      this.#known.set(file, { version, content: known.content, bad: digest, error: reason })
    }
    return true
  }

  /** A mistake may be a file that somebody is in the middle of writing, so it is believed only when it is still there. */
  async #readTwice(file: string): Promise<FileContent> {
    try {
      return readContent(file, await readText(file), this.#options)
    } catch {
      await sleep(this.#rereadAfterMs)
    }
    const text = await readText(file)
    try {
      return readContent(file, text, this.#options)
    } catch (error) {
      throw new BadContent(createHash('sha256').update(text).digest('hex'), error)
    }
  }
}

class BadContent extends Error {
  readonly digest: string

  constructor(digest: string, cause: unknown) {
    super('bad content', { cause })
    this.digest = digest
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new KpngError('unavailable', `${file} cannot be read: ${messageOf(error)}. Check its permissions.`, {
      cause: error,
    })
  }
}
