import { create } from '@bufbuild/protobuf'
import { type Log, localv1, messageOf } from '@kpng/api'
import type { Batch, ChangeSet } from './change-set.js'
import type { DeleteItem, SetItem } from './item.js'
import { frameOf, resetFrame, SyncFrames, type SyncOptions } from './sync-frames.js'

/** Framed messages, one after the other, and how many items they tell of. */
export interface Piece {
  readonly bytes: Buffer
  readonly items: number
}

type Item = SetItem | DeleteItem

/** The frames of some items that follow each other, and then of the next. Where items cannot be encoded, theirs are empty. */
export interface Chunk extends Piece {
  /** Where each item's frame ends. */
  readonly ends: readonly number[]
  /** The frames of the items that follow, once somebody needed them. */
  next?: Chunk
}

/** Large enough to be cheap. Small, since a thousand watchers that start at once have one such piece each on its way. */
const pieceBytes = 24 * 1024

/** Change sets of more items are not kept as a whole. Their batches are. */
const few = 64

/**
 * Items as they go over the wire. What many watchers are told is encoded when the first of them needs it and kept for as long as the
 * view keeps the items.
 */
export class ItemFrames {
  readonly #log: Log
  readonly #shared = new WeakMap<readonly Item[], Chunk>()
  readonly #syncs = new SyncFrames()
  readonly #reported = new Set<string>()
  /** The last small change set. Most watchers are told the same after a change: they get the same bytes. */
  #last: (Pick<ChangeSet, 'setBatches' | 'deleteBatches'> & { sync: Buffer; pieces: readonly Piece[] }) | undefined

  constructor(log: Log) {
    this.#log = log
  }

  /** A change set in pieces that can be written one by one. */
  of(changeSet: ChangeSet, options: SyncOptions = {}): Iterable<Piece> {
    const { setBatches, deleteBatches } = changeSet
    const sync = this.#syncs.of(changeSet, options)
    const last = this.#last
    const isLast = last?.setBatches === setBatches && last.deleteBatches === deleteBatches && last.sync === sync
    if (isLast) return last.pieces
    const pieces = this.#pieces(changeSet, sync)
    if (changeSet.whole || countItems(setBatches) + countItems(deleteBatches) > few) return pieces
    this.#last = { setBatches, deleteBatches, sync, pieces: [...pieces] }
    return this.#last.pieces
  }

  *#pieces(changeSet: ChangeSet, sync: Buffer): Generator<Piece> {
    const gathered = new Gathered()
    if (changeSet.reset) gathered.add(resetFrame, 0)
    for (const batches of [changeSet.setBatches, changeSet.deleteBatches]) {
      for (const batch of batches as Iterable<Batch<Item>>) {
        let done = 0
        for (const chunk of this.chunksOf(batch)) {
          if (batch.except) addWithout(chunk, batch.items, done, batch.except, gathered)
          else gathered.add(chunk.bytes, chunk.items)
          done += chunk.ends.length
          if (gathered.ready.length > 0) yield* gathered.ready.splice(0)
        }
      }
    }
    gathered.add(sync, 0)
    gathered.flush()
    yield* gathered.ready
  }

  /** The frames of all items of a batch, also of those that this watcher is not told. */
  *chunksOf(batch: Batch<Item>): Generator<Chunk> {
    let done = 0
    for (let chunk = this.#first(batch); chunk; chunk = this.#after(chunk, batch, done)) {
      yield chunk
      done += chunk.ends.length
    }
  }

  #first({ items, isShared }: Batch<Item>): Chunk | undefined {
    const known = isShared ? this.#shared.get(items) : undefined
    if (known || items.length === 0) return known
    const chunk = this.#encode(items, 0)
    if (isShared) this.#shared.set(items, chunk)
    return chunk
  }

  #after(chunk: Chunk, { items }: Batch<Item>, done: number): Chunk | undefined {
    if (done === items.length) return undefined
    chunk.next ??= this.#encode(items, done)
    return chunk.next
  }

  #encode(items: readonly Item[], start: number): Chunk {
    const frames: Buffer[] = []
    const ends: number[] = []
    let bytes = 0
    let count = 0
    for (let index = start; index < items.length && bytes < pieceBytes; index++) {
      const encoded = this.#frame(items[index] as Item)
      frames.push(encoded)
      bytes += encoded.length
      ends.push(bytes)
      if (encoded.length > 0) count++
    }
    // A copy, which is no longer than it must be: there may be one per service.
    return { bytes: inOne(frames, bytes), items: count, ends: ends.slice() }
  }

  /**
   * Sources take nothing that cannot be encoded. Should one do, that is one item that nobody is told of; thrown on, it would end the
   * watch of every node, again and again. It is said once and not for each watcher.
   */
  #frame(item: Item): Buffer {
    try {
      return 'encode' in item ? encodeSet(item) : frameOf({ case: 'delete', value: refOf(item) })
    } catch (error) {
      const what = { set: localv1.Set[item.set], path: item.path, error: messageOf(error) }
      const text = JSON.stringify(what)
      if (!this.#reported.has(text)) {
        this.#log.error('An item cannot be encoded: nobody is told of it. Please report this as a bug', what)
      }
      this.#reported.add(text)
      return noFrame
    }
  }
}

/** Small frames go out together. Large ones go out as they are: a client that does not read must not cost a copy of them. */
class Gathered {
  /** What can be written. */
  readonly ready: Piece[] = []
  #buffers: Buffer[] = []
  #bytes = 0
  #items = 0

  add(bytes: Buffer, items: number): void {
    if (bytes.length >= pieceBytes) this.flush()
    this.#buffers.push(bytes)
    this.#bytes += bytes.length
    this.#items += items
    if (this.#bytes >= pieceBytes) this.flush()
  }

  flush(): void {
    if (this.#bytes > 0) this.ready.push({ bytes: inOne(this.#buffers, this.#bytes), items: this.#items })
    this.#buffers = []
    this.#bytes = 0
    this.#items = 0
  }
}

const inOne = (buffers: readonly Buffer[], bytes: number): Buffer =>
  buffers.length === 1 ? (buffers[0] as Buffer) : Buffer.concat(buffers, bytes)

/** Adds the runs of a chunk between the items that are left out. */
function addWithout(
  { bytes, ends }: Chunk,
  items: readonly Item[],
  first: number,
  except: ReadonlySet<string>,
  gathered: Gathered,
): void {
  let start = 0
  let count = 0
  for (const [index, end] of ends.entries()) {
    const begin = ends[index - 1] ?? 0
    if (!except.has((items[first + index] as Item).path)) {
      if (end > begin) count++
      continue
    }
    if (count > 0) gathered.add(bytes.subarray(start, begin), count)
    start = end
    count = 0
  }
  if (count > 0) gathered.add(bytes.subarray(start), count)
}

function countItems(batches: Iterable<Batch<Item>>): number {
  let count = 0
  for (const { items } of batches) count += items.length
  return count
}

const noFrame = Buffer.alloc(0)
const refOf = ({ set, path }: DeleteItem): localv1.Ref => create(localv1.RefSchema, { set, path })

/**
 * `OpItem { set: Value { ref: Ref { set, path }, bytes } }`, written by hand: this is made for every endpoint there is, and
 * building three messages around the bytes took longer than encoding the endpoint itself.
 */
export function encodeSet(item: SetItem): Buffer {
  const bytes = item.encode()
  const pathLength = Buffer.byteLength(item.path)
  const refLength = 1 + varintLength(item.set) + 1 + varintLength(pathLength) + pathLength
  const valueLength = 1 + varintLength(refLength) + refLength + 1 + varintLength(bytes.length) + bytes.length
  const messageLength = 1 + varintLength(valueLength) + valueLength
  const buffer = Buffer.allocUnsafe(5 + messageLength)
  buffer[0] = 0
  let at = buffer.writeUInt32BE(messageLength, 1)
  at = writeTag(buffer, at, 2, valueLength)
  at = writeTag(buffer, at, 1, refLength)
  buffer[at++] = 1 << 3
  at = writeVarint(buffer, at, item.set)
  at = writeTag(buffer, at, 2, pathLength)
  at += buffer.write(item.path, at)
  at = writeTag(buffer, at, 2, bytes.length)
  buffer.set(bytes, at)
  return buffer
}

function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) length++
  return length
}

function writeVarint(buffer: Buffer, at: number, value: number): number {
  let rest = value
  let next = at
  for (; rest > 127; rest = Math.floor(rest / 128)) buffer[next++] = (rest % 128) | 128
  buffer[next++] = rest
  return next
}

/** A length-delimited field: its tag and its length. */
function writeTag(buffer: Buffer, at: number, field: number, length: number): number {
  buffer[at] = (field << 3) | 2
  return writeVarint(buffer, at + 1, length)
}
