import { create, toBinary } from '@bufbuild/protobuf'
import { type Log, localv1, messageOf } from '@kpng/api'
import type { Batch, ChangeSet, DeleteItem, SetItem } from '../../view/index.js'
import { frame } from './grpc/index.js'

// Items as they go over the wire. An item's frame is made when the first watcher needs it and then shared by all of them.

export const resetFrame = frameOf({ case: 'reset', value: create(localv1.EmptyOpSchema) })
const plainSync = frameOf({ case: 'sync', value: create(localv1.EmptyOpSchema) })

function syncFrame({ triggers, timeline }: ChangeSet, withTimeline: boolean): Buffer {
  const told = withTimeline ? timeline : undefined
  if (triggers.length === 0 && !told) return plainSync
  const value = create(localv1.EmptyOpSchema, {
    triggers: triggers.map(({ service, unixMs }) => ({ service, unixMs: BigInt(Math.trunc(unixMs)) })),
    ...(told ? { timeline: { ...told, revision: BigInt(told.revision), receivedAtMs: told.receivedAtMs ?? 0 } } : {}),
  })
  return frameOf({ case: 'sync', value })
}

export interface FrameOptions {
  /** Told what cannot be encoded. */
  readonly log: Log
  /** Default false. */
  readonly withTimeline?: boolean
}

/** The frames of a change set, in order; several may come as one buffer, and one that is empty stands for nothing. */
export function* framesOf(changeSet: ChangeSet, { log, withTimeline = false }: FrameOptions): Generator<Buffer> {
  if (changeSet.reset) yield resetFrame
  for (const batch of changeSet.batches) {
    if (batch.shared) yield batchFrames(batch, log)
    else for (const item of batch.items) yield setFrame(item, log)
  }
  for (const item of changeSet.deletes) yield deleteFrame(item)
  yield syncFrame(changeSet, withTimeline)
}

/** How many frames a buffer holds: what went over the wire knows best what was told. */
export function countFrames(frames: Buffer): number {
  let count = 0
  for (let at = 0; at < frames.length; at += 5 + frames.readUInt32BE(at + 1)) count++
  return count
}

function batchFrames(batch: Batch, log: Log): Buffer {
  batch.frames ??= Buffer.concat([...batch.items].map((item) => setFrame(item, log)))
  return batch.frames
}

const noFrame = Buffer.alloc(0)

/**
 * Sources take nothing that cannot be encoded. Should one do, that is one item that nobody is told of; thrown on, it would end the
 * watch of every node, again and again. The empty frame stays with the item, so that it is said once and not for each watcher.
 */
function setFrame(item: SetItem, log: Log): Buffer {
  if (item.frame) return item.frame
  try {
    item.frame = encodeSet(item)
  } catch (error) {
    item.frame = noFrame
    const what = { set: localv1.Set[item.set], path: item.path, error: messageOf(error) }
    log.error('An item cannot be encoded: nobody is told of it. Please report this as a bug', what)
  }
  return item.frame
}

function deleteFrame(item: DeleteItem): Buffer {
  item.frame ??= frameOf({ case: 'delete', value: create(localv1.RefSchema, { set: item.set, path: item.path }) })
  return item.frame
}

function frameOf(op: localv1.OpItem['op']): Buffer {
  return frame(toBinary(localv1.OpItemSchema, create(localv1.OpItemSchema, { op })))
}

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
