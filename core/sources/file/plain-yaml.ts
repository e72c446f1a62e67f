import type { Place } from '../../kubernetes/fields.js'
import { PlainReader, type Position, type ReadItem } from './plain-reader.js'
import { NotPlain } from './plain-scalars.js'

// A state file of 10,000 services is 50 MB; the full YAML parser needs more than a minute for it. This reads, in one pass, the
// part of YAML that programs write: block maps and lists, scalars on one line, `[…]` and `{…}` on one line, comments. Whatever it
// does not understand for certain (anchors, tags, block scalars, tabs, odd keys, mistakes) it does not guess: it gives up, and
// the full parser decides. So it never has to make an error message, and what it returns is what the full parser would return.

export type { Position, ReadItem } from './plain-reader.js'

/** The documents of a text, or undefined when it is not plain. */
export const readPlainYaml = (text: string): unknown[] | undefined =>
  unlessNotPlain(() => new PlainReader(text).documents())

/**
 * The documents of a text in which single items of lists may be beyond plain YAML: only those are handed to `readItem`. For texts
 * that are too long for the full parser. Returns a position when the text as a whole is not plain.
 */
export function readLongYaml(text: string, readItem: ReadItem): unknown[] | Position {
  const reader = new PlainReader(text, undefined, readItem)
  return unlessNotPlain(() => reader.documents()) ?? reader.position
}

/** Where a value stands in a text that readPlainYaml has read. */
export function locateInPlainYaml(text: string, document: number, place: Place): Position | undefined {
  return unlessNotPlain(() => {
    const reader = new PlainReader(text, [document, ...place])
    reader.documents()
    return reader.found
  })
}

/** Where a value stands in a text that readLongYaml has read; in an item that is not plain, where the item begins. */
export function locateInLongYaml(text: string, document: number, place: Place): Position {
  const reader = new PlainReader(text, [document, ...place], () => null)
  unlessNotPlain(() => reader.documents())
  return reader.found ?? reader.foundAbove ?? { line: 1, column: 1 }
}

function unlessNotPlain<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof NotPlain) return undefined
    throw error
  }
}
