import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { KpngError } from '@kpng/api'
import { freeze } from '../objects/json.js'
import type { KubeObject } from '../objects/types.js'
import { type Change, type Store, Stored } from './store.js'

interface Line {
  resource: string
  key: string
  revision: number
  /** Absent: it was deleted. */
  object?: KubeObject
}

const format = { 'kpng-playground': 1 }

/**
 * Keeps a store in a folder: `objects.jsonl` is a snapshot followed by one line per change, written in the turn after it.
 * A last line that a crash has cut off is ignored; a snapshot replaces the file in one step.
 */
export class DataFile {
  readonly #path: string
  readonly #lockPath: string
  #descriptor = -1
  #waiting: string[] = []
  #scheduled = false
  #written = 0
  readonly #store: Store

  constructor(folder: string, store: Store) {
    this.#store = store
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    this.#path = join(folder, 'objects.jsonl')
    this.#lockPath = join(folder, 'lock')
    this.#lock(folder)
    this.#load()
    this.#snapshot()
    store.subscribe(undefined, (change) => this.#append(change))
  }

  /** Two playgrounds in one folder would overwrite each other. */
  #lock(folder: string): void {
    if (existsSync(this.#lockPath)) {
      const owner = Number(readFileSync(this.#lockPath, 'utf8'))
      if (isAlive(owner)) {
        throw new KpngError(
          'unavailable',
          `The data folder ${folder} is in use by the process ${owner}; stop it, or choose another folder.`,
        )
      }
    }
    writeFileSync(this.#lockPath, String(process.pid), { mode: 0o600 })
  }

  #load(): void {
    if (!existsSync(this.#path)) return
    const lines = readFileSync(this.#path, 'utf8').split('\n')
    const header = this.#parse(lines[0] ?? '', 1) as { revision?: number } & Partial<typeof format>
    if (header['kpng-playground'] !== 1) {
      throw new KpngError(
        'invalid',
        `The file ${this.#path} is not a playground's; move it away, or choose another data folder.`,
      )
    }
    const objects = new Map<string, { resource: string; stored: Stored }>()
    let revision = header.revision ?? 1
    for (const [index, text] of lines.entries()) {
      // The text after the last line feed is empty, or the beginning of a line that was never finished.
      if (index === 0 || index === lines.length - 1 || text === '') continue
      const line = this.#parse(text, index + 1) as Line
      revision = Math.max(revision, line.revision)
      const id = `${line.resource} ${line.key}`
      if (!line.object) objects.delete(id)
      else
        objects.set(id, { resource: line.resource, stored: new Stored(line.key, line.revision, freeze(line.object)) })
    }
    this.#store.load(revision, objects.values())
  }

  #parse(text: string, number: number): unknown {
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw new KpngError(
        'invalid',
        `Line ${number} of ${this.#path} is not JSON; restore the file, or delete it to start empty.`,
        { cause },
      )
    }
  }

  /** Writes everything as one new file, and goes on behind it. */
  #snapshot(): void {
    const temporary = `${this.#path}.new`
    const descriptor = openSync(temporary, 'w', 0o600)
    writeSync(descriptor, `${JSON.stringify({ ...format, revision: this.#store.revision })}\n`)
    this.#written = 0
    for (const { resource, stored } of this.#store.entries()) {
      writeSync(
        descriptor,
        lineOf({ resource, key: stored.key, revision: stored.revision, object: stored.object as KubeObject }),
      )
    }
    fsyncSync(descriptor)
    renameSync(temporary, this.#path)
    if (this.#descriptor >= 0) closeSync(this.#descriptor)
    this.#descriptor = descriptor
  }

  #append({ resource, key, revision, after, deleted }: Change): void {
    const line: Line = deleted
      ? { resource, key, revision }
      : { resource, key, revision, object: after.object as KubeObject }
    this.#waiting.push(lineOf(line))
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#scheduled = false
    if (this.#descriptor < 0 || this.#waiting.length === 0) return
    this.#written += this.#waiting.length
    writeSync(this.#descriptor, this.#waiting.join(''))
    this.#waiting = []
    // The file would grow with every change; rewriting it now and then keeps it near the size of the state.
    if (this.#written > 20_000) this.#snapshot()
  }

  close(): void {
    this.#flush()
    if (this.#descriptor >= 0) closeSync(this.#descriptor)
    this.#descriptor = -1
    rmSync(this.#lockPath, { force: true })
  }
}

const lineOf = (line: Line): string => `${JSON.stringify(line)}\n`

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
