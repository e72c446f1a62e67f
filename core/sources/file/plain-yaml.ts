import type { Place } from '../objects/fields.js'
import { PlainLines } from './plain-lines.js'
import { flowScalar, giveUp, NotPlain, quoted, resolvePlain, startsPlain } from './plain-scalars.js'

// A state file of 10,000 services is 50 MB; the full YAML parser needs more than a minute for it. This reads, in one pass, the
// part of YAML that programs write: block maps and lists, scalars on one line, `[…]` and `{…}` on one line, comments. Whatever it
// does not understand for certain (anchors, tags, block scalars, tabs, odd keys, mistakes) it does not guess: it gives up, and
// the full parser decides. So it never has to make an error message, and what it returns is what the full parser would return.

export interface Position {
  readonly line: number
  readonly column: number
}

/** The documents of a text, or undefined when it is not plain. */
export const readPlainYaml = (text: string): unknown[] | undefined =>
  unlessNotPlain(() => new PlainReader(text).documents())

/** Where a value stands in a text that readPlainYaml has read. */
export function locateInPlainYaml(text: string, document: number, place: Place): Position | undefined {
  return unlessNotPlain(() => {
    const reader = new PlainReader(text, [document, ...place])
    reader.documents()
    return reader.found
  })
}

function unlessNotPlain<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof NotPlain) return undefined
    throw error
  }
}

class PlainReader {
  readonly #lines: PlainLines
  readonly #text: string
  readonly #wanted: Place | undefined
  readonly #path: (string | number)[] = []
  /** Equal strings become one, and none keeps the whole text in memory as a slice of it would. */
  readonly #strings = new Map<string, string>()
  found: Position | undefined

  constructor(text: string, wanted?: Place) {
    this.#lines = new PlainLines(text)
    this.#text = text
    this.#wanted = wanted
  }

  documents(): unknown[] {
    const documents: unknown[] = []
    let separated = this.#lines.skipSeparator()
    while (this.#lines.indent >= 0 || separated) {
      documents.push(this.#at(documents.length, this.#lines.start, () => this.#block(-1)))
      separated = this.#lines.skipSeparator()
      if (this.#lines.indent >= 0 && !separated) giveUp()
    }
    return documents
  }

  /** The node on the lines that are indented deeper than `parent`. */
  #block(parent: number): unknown {
    const lines = this.#lines
    return lines.indent <= parent || lines.isSeparator ? null : this.#node(lines.indent)
  }

  /** The node that begins where the lines are, as if its line were indented by `indent`. */
  #node(indent: number): unknown {
    const lines = this.#lines
    if (lines.isItem) return this.#list(indent)
    if (lines.keyEnd() !== undefined) return this.#map(indent)
    const value = this.#inline()
    if (lines.indent >= indent && !lines.isSeparator) giveUp()
    return value
  }

  #list(indent: number): unknown[] {
    const lines = this.#lines
    const items: unknown[] = []
    while (lines.indent === indent && lines.isItem) {
      items.push(this.#at(items.length, lines.start, () => this.#item(indent)))
    }
    if (lines.indent > indent) giveUp()
    return items
  }

  #item(indent: number): unknown {
    const lines = this.#lines
    if (lines.endsAt(lines.start + 1)) {
      lines.advance()
      return this.#block(indent)
    }
    // `- name: x`: the map is indented by where its first key stands.
    const start = lines.skipBlanks(lines.start + 1)
    lines.indent = indent + start - lines.start
    lines.start = start
    return this.#node(lines.indent)
  }

  #map(indent: number): Record<string, unknown> {
    const lines = this.#lines
    const fields: Record<string, unknown> = {}
    while (lines.indent === indent && !lines.isSeparator) {
      if (lines.isItem) giveUp()
      const colon = lines.keyEnd() ?? giveUp()
      const key = this.#key(colon)
      if (key === '__proto__' || Object.hasOwn(fields, key)) giveUp()
      fields[key] = this.#at(key, lines.start, () => this.#mapValue(indent, colon))
    }
    if (lines.indent > indent) giveUp()
    return fields
  }

  #key(colon: number): string {
    const { start } = this.#lines
    if (isQuote(this.#text.charCodeAt(start))) return this.#shared(quoted(this.#text, start, colon).value)
    if (!startsPlain(this.#text, start)) giveUp()
    const key = this.#text.slice(start, colon)
    if (!/^[\w./-]+$/.test(key) || typeof resolvePlain(key) !== 'string') giveUp()
    return this.#shared(key)
  }

  #mapValue(indent: number, colon: number): unknown {
    const lines = this.#lines
    if (!lines.endsAt(colon + 1)) {
      lines.start = lines.skipBlanks(colon + 1)
      this.#note(lines.start)
      const value = this.#inline()
      if (lines.indent > indent) giveUp()
      return value
    }
    lines.advance()
    // A list may stand as far left as the key that it belongs to.
    return lines.indent === indent && lines.isItem ? this.#list(indent) : this.#block(indent)
  }

  /** A scalar or a flow collection that ends on its line. Moves on to the next line. */
  #inline(): unknown {
    const lines = this.#lines
    const first = this.#text.charCodeAt(lines.start)
    if (isQuote(first) || first === 0x5b || first === 0x7b) {
      const { value, end } = this.#flow(lines.start)
      if (!lines.endsAt(end)) giveUp()
      lines.advance()
      return value
    }
    const value = this.#plainValue(this.#plainText())
    lines.advance()
    return value
  }

  /** The scalar without quotes that fills the rest of the line. */
  #plainText(): string {
    const text = this.#text
    const { start } = this.#lines
    if (!startsPlain(text, start)) giveUp()
    let end = this.#lines.end
    for (let at = start + 1; at < end; at++) {
      const code = text.charCodeAt(at)
      if (code === 0x3a && (at + 1 === end || text.charCodeAt(at + 1) === 0x20)) giveUp()
      if (code === 0x23 && text.charCodeAt(at - 1) === 0x20) end = at
    }
    while (text.charCodeAt(end - 1) === 0x20) end--
    return text.slice(start, end)
  }

  #plainValue(text: string): unknown {
    const value = resolvePlain(text)
    return typeof value === 'string' ? this.#shared(value) : value
  }

  #flow(at: number): { value: unknown; end: number } {
    const first = this.#text.charCodeAt(at)
    if (first === 0x5b) return this.#flowItems(at, 0x5d, [], (items, start) => this.#flowItem(items, start))
    if (first === 0x7b) return this.#flowItems(at, 0x7d, {}, (fields, start) => this.#flowField(fields, start))
    if (isQuote(first)) {
      const { value, end } = quoted(this.#text, at, this.#lines.end)
      return { value: this.#shared(value), end }
    }
    const { value, end } = flowScalar(this.#text, at)
    return { value: this.#plainValue(value), end }
  }

  /** What stands between brackets, separated by commas. `read` adds one to the result and says where it ended. */
  #flowItems<T>(
    at: number,
    close: number,
    into: T,
    read: (into: T, start: number) => number,
  ): { value: T; end: number } {
    let end = this.#lines.skipBlanks(at + 1)
    if (this.#text.charCodeAt(end) === close) return { value: into, end: end + 1 }
    for (;;) {
      end = this.#lines.skipBlanks(read(into, end))
      const code = this.#text.charCodeAt(end)
      if (code === close) return { value: into, end: end + 1 }
      if (code !== 0x2c) giveUp()
      end = this.#lines.skipBlanks(end + 1)
    }
  }

  #flowItem(items: unknown[], start: number): number {
    const { value, end } = this.#at(items.length, start, () => this.#flow(start))
    items.push(value)
    return end
  }

  #flowField(fields: Record<string, unknown>, start: number): number {
    const { value: key, end: colon } = this.#flow(start)
    if (typeof key !== 'string' || key === '__proto__' || Object.hasOwn(fields, key)) return giveUp()
    if (this.#text.charCodeAt(colon) !== 0x3a || this.#text.charCodeAt(colon + 1) !== 0x20) giveUp()
    const from = this.#lines.skipBlanks(colon + 1)
    const { value, end } = this.#at(key, from, () => this.#flow(from))
    fields[key] = value
    return end
  }

  #shared(value: string): string {
    const known = this.#strings.get(value)
    if (known !== undefined) return known
    // V8 keeps a long slice as a window on the whole text; joining and cutting makes a string of its own.
    const own = value.length < 13 ? value : ` ${value}`.slice(1)
    this.#strings.set(own, own)
    return own
  }

  /** Reads a value one step down, and notes its position when it is the one that is looked for. */
  #at<T>(step: string | number, start: number, read: () => T): T {
    if (!this.#wanted) return read()
    this.#path.push(step)
    this.#note(start)
    const value = read()
    this.#path.pop()
    return value
  }

  #note(start: number): void {
    const wanted = this.#wanted
    if (wanted?.length !== this.#path.length || !wanted.every((step, index) => step === this.#path[index])) return
    const lineStart = this.#text.lastIndexOf('\n', start - 1) + 1
    this.found = { line: this.#text.slice(0, start).split('\n').length, column: start - lineStart + 1 }
  }
}

const isQuote = (code: number): boolean => code === 0x22 || code === 0x27
