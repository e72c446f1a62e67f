import type { Status } from '../status/status.js'
import { atRevision, type Change, Stored } from '../storage/store.js'
import type { Filter } from './filter.js'
import type { Representation } from './representation.js'

const frame = (type: string, object: string): Buffer => Buffer.from(`{"type":"${type}","object":${object}}\n`)

/** Frames of the latest changes, by form. Live watches ask for the same ones within moments; older ones are not worth the memory. */
const recent = new Map<Change, Map<string, Buffer>>()
const recentLimit = 256

function once(change: Change, id: string, make: () => Buffer): Buffer {
  let frames = recent.get(change)
  if (!frames) {
    frames = new Map()
    recent.set(change, frames)
    const [oldest] = recent.keys()
    if (recent.size > recentLimit && oldest) recent.delete(oldest)
  }
  const made = frames.get(id) ?? make()
  frames.set(id, made)
  return made
}

/** An object that was there when the watch began. Not kept: it is written once per watch, and there may be many. */
export const initialFrame = (stored: Stored, form: Representation): Buffer => frame('ADDED', form.object(stored))

/**
 * What one watch sees of a change: nothing, or one event. An object that leaves the selection is DELETED for this watch,
 * one that enters it ADDED. The bytes are made once for all watches of the same form.
 */
export function changeFrame(change: Change, filter: Filter, form: Representation): Buffer | undefined {
  const { before, after, deleted } = change
  const was = before !== undefined && filter(before)
  const is = !deleted && filter(after)
  if (is) {
    const type = was ? 'MODIFIED' : 'ADDED'
    return once(change, `${form.id} ${type}`, () => frame(type, form.object(after)))
  }
  if (!was || !before) return undefined
  if (deleted) return once(change, `${form.id} DELETED`, () => frame('DELETED', form.object(after)))
  // The last version the watch could see, with the revision of the change that took it away.
  const { key, revision } = change
  const last = () => new Stored(key, revision, atRevision(before.object, revision))
  return once(change, `${form.id} left`, () => frame('DELETED', form.object(last())))
}

export function bookmarkFrame(revision: number, form: Representation, initialEventsEnd: boolean): Buffer {
  const annotations = initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
  return frame(
    'BOOKMARK',
    form.bookmark({ resourceVersion: String(revision), creationTimestamp: null, ...annotations }),
  )
}

export const errorFrame = (status: Status): Buffer => frame('ERROR', JSON.stringify(status))
