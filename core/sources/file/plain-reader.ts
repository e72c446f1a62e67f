import type { Place } from '../../kubernetes/fields.js'
import { PlainLines } from './plain-lines.js'
import { flowScalar, giveUp, NotPlain, quoted, resolvePlain, startsPlain } from './plain-scalars.js'

export interface Position {
  readonly line: number
  readonly column: number
}

/**
 * Reads an item of a list that is not plain.
 * @param text the item's lines
 * @param line the number of the first of them, from 1
 */
export type ReadItem = (text: string, line: number) => unknown

/** Reads plain YAML, see plain-yaml.ts. Throws NotPlain. */
export class PlainReader {
  readonly #lines: PlainLines
  readonly #text: string
  readonly #wanted: Place | undefined
  readonly #path: (string | number)[] = []
  /** Equal strings become one, and none keeps the whole text in memory as a slice of it would. */
  readonly #strings = new Map<string, string>()
  readonly #readItem: ReadItem | undefined
  /** The line that begins at `counted`. */
  #line = 1
  #counted = 0
  found: Position | undefined
  /** The innermost value around the one that is looked for. */
  foundAbove: Position | undefined

  constructor(text: string, wanted?: Place, readItem?: ReadItem) {
    this.#lines = new PlainLines(text)
    this.#text = text
    this.#wanted = wanted
    this.#readItem = readItem
  }

  /** Where the reader is. */
  get position(): Position {
    return positionAt(this.#text, this.#lines.start)
  }

  documents(): unknown[] {
    const documents: unknown[] = []
    this.#lines.advance()
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
    if (lines.unsafe) giveUp()
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
      items.push(this.#at(items.length, lines.start, () => this.#itemOrText(indent)))
    }
    if (lines.indent > indent) giveUp()
    return items
  }

  #itemOrText(indent: number): unknown {
    const readItem = this.#readItem
    if (!readItem) return this.#item(indent)
    const { start } = this.#lines
    const depth = this.#path.length
    try {
      return this.#item(indent)
    } catch (error) {
      if (!(error instanceof NotPlain)) throw error
      this.#path.length = depth
      const value = readItem(this.#lines.takeItem(start, indent), this.#lineOf(start))
      if (this.#lines.indent > indent) giveUp()
      return value
    }
  }

  /** Counts on from where it was asked last: there may be thousands of such items. */
  #lineOf(at: number): number {
    for (let feed = this.#text.indexOf('\n', this.#counted); feed >= 0 && feed < at; ) {
      this.#line++
      this.#counted = feed + 1
      feed = this.#text.indexOf('\n', this.#counted)
    }
    return this.#line
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
      if (lines.unsafe || lines.isItem) giveUp()
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
    if (!wanted || wanted.length < this.#path.length || this.#path.some((step, index) => step !== wanted[index])) return
    const position = positionAt(this.#text, start)
    if (wanted.length === this.#path.length) this.found = position
    else this.foundAbove = position
  }
}

function positionAt(text: string, at: number): Position {
  const lineStart = at === 0 ? 0 : text.lastIndexOf('\n', at - 1) + 1
  let line = 1
  for (let feed = text.indexOf('\n'); feed >= 0 && feed < at; feed = text.indexOf('\n', feed + 1)) line++
  return { line, column: at - lineStart + 1 }
}

const isQuote = (code: number): boolean => code === 0x22 || code === 0x27
