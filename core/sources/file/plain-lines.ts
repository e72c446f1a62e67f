import { giveUp, quoted } from './plain-scalars.js'

/** Control characters (line feeds aside) and what else YAML or editors treat in a way of their own. */
const unsafe = /[^\P{Cc}\n]|[\u2028\u2029\ufeff\ufffe\uffff]/gu

/** Goes through a text line by line; lines without content are passed over. */
export class PlainLines {
  readonly text: string
  /** Where the content that is next begins, and where its line ends without the blanks at its end. */
  start = 0
  end = 0
  /** How far it is indented; -1 at the end of the text. */
  indent = -1
  /** Whether there is something in the line that only the full parser should look at. */
  unsafe = false
  #next = 0
  /** Where the first unsafe character at or after what is next stands. */
  #unsafeAt = -1

  constructor(text: string) {
    this.text = text
  }

  advance(): void {
    const text = this.text
    while (this.#next < text.length) {
      const lineStart = this.#next
      const feed = text.indexOf('\n', lineStart)
      const lineEnd = feed < 0 ? text.length : feed
      this.#next = lineEnd + 1
      const start = this.#skip(lineStart, lineEnd)
      if (start === lineEnd || text.charCodeAt(start) === 0x23) continue
      let end = lineEnd
      while (text.charCodeAt(end - 1) === 0x20) end--
      this.start = start
      this.end = end
      this.indent = start - lineStart
      this.unsafe = this.#isUnsafe(lineStart, lineEnd)
      // Directives and document ends are for the full parser.
      if (this.indent === 0 && (text.charCodeAt(start) === 0x25 || text.startsWith('...', start))) giveUp()
      return
    }
    this.start = text.length
    this.end = text.length
    this.indent = -1
  }

  #isUnsafe(lineStart: number, lineEnd: number): boolean {
    if (this.#unsafeAt < lineStart) {
      unsafe.lastIndex = lineStart
      this.#unsafeAt = unsafe.exec(this.text)?.index ?? this.text.length
    }
    return this.#unsafeAt < lineEnd
  }

  /**
   * Passes over the item of a list that begins at `from`, whatever is in it, and returns its lines as they are. An item ends where
   * something stands as far left as its dash.
   */
  takeItem(from: number, indent: number): string {
    const { text } = this
    const lineStart = text.lastIndexOf('\n', from - 1) + 1
    // An item that begins in the middle of a line cannot be cut out.
    if (from - lineStart !== indent) giveUp()
    let next = this.#lineAfter(from)
    while (next < text.length) {
      const lineEnd = this.#lineAfter(next) - 1
      const start = this.#skip(next, lineEnd)
      const isContent = start < lineEnd && text.charCodeAt(start) !== 0x23
      if (isContent && start - next <= indent) break
      next = lineEnd + 1
    }
    this.#next = next
    const item = text.slice(lineStart, Math.min(next, text.length))
    this.advance()
    return item
  }

  #lineAfter(at: number): number {
    const feed = this.text.indexOf('\n', at)
    return feed < 0 ? this.text.length + 1 : feed + 1
  }

  skipBlanks(at: number): number {
    return this.#skip(at, this.end)
  }

  #skip(at: number, end: number): number {
    let rest = at
    while (rest < end && this.text.charCodeAt(rest) === 0x20) rest++
    return rest
  }

  /** Whether nothing but a comment is left of the line. */
  endsAt(at: number): boolean {
    const rest = this.skipBlanks(at)
    return rest === this.end || (rest > at && this.text.charCodeAt(rest) === 0x23)
  }

  /** `---` */
  get isSeparator(): boolean {
    return this.indent === 0 && this.text.startsWith('---', this.start)
  }

  skipSeparator(): boolean {
    if (!this.isSeparator) return false
    if (this.end - this.start !== 3) giveUp()
    this.advance()
    return true
  }

  /** `- …` */
  get isItem(): boolean {
    if (this.text.charCodeAt(this.start) !== 0x2d || this.isSeparator) return false
    return this.end === this.start + 1 || this.text.charCodeAt(this.start + 1) === 0x20
  }

  /** Where the colon of `key: …` is, or undefined when the line does not begin with a key. */
  keyEnd(): number | undefined {
    const { text, end } = this
    const first = text.charCodeAt(this.start)
    if (first === 0x7b || first === 0x5b) return undefined
    if (first === 0x22 || first === 0x27) {
      const colon = quoted(text, this.start, end).end
      if (text.charCodeAt(colon) !== 0x3a || colon >= end) return undefined
      return colon + 1 === end || text.charCodeAt(colon + 1) === 0x20 ? colon : giveUp()
    }
    for (let at = this.start; at < end; at++) {
      const code = text.charCodeAt(at)
      if (code === 0x3a && (at + 1 === end || text.charCodeAt(at + 1) === 0x20)) return at
      if (code === 0x23 && text.charCodeAt(at - 1) === 0x20) return undefined
    }
    return undefined
  }
}
