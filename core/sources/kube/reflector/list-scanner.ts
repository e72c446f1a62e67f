const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * Cuts the items out of a list answer `{"metadata":{…},"items":[{…},{…}]}` while it arrives, so that neither its text (tens of
 * MB for 500 large EndpointSlices) nor all its objects are ever held, and no single parse blocks. What is not an item, the
 * envelope, is kept and parsed at the end.
 */
export class ListScanner {
  #depth = 0
  #inString = false
  #escaped = false
  #inItems = false
  #envelope: Buffer[] = []
  #item: Buffer[] = []

  /** The items that this chunk completes, as JSON text. */
  push(chunk: Buffer): Buffer[] {
    const items: Buffer[] = []
    // Where the part of the chunk begins that has not been given away yet: to the item under way, or to the envelope.
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at]
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false
        else if (byte === backslash) this.#escaped = true
        else if (byte === quote) this.#inString = false
      } else if (byte === quote) {
        this.#inString = true
      } else if (byte === openBrace || byte === openBracket) {
        this.#depth++
        if (this.#inItems) {
          if (this.#depth === 3) from = at
        } else if (byte === openBracket && this.#depth === 2 && this.#isItems(chunk.subarray(from, at))) {
          this.#envelope.push(chunk.subarray(from, at + 1))
          this.#inItems = true
        }
      } else if (byte === closeBrace || byte === closeBracket) {
        this.#depth--
        if (this.#inItems && this.#depth === 2) {
          items.push(Buffer.concat([...this.#item, chunk.subarray(from, at + 1)]))
          this.#item = []
        } else if (this.#inItems && this.#depth === 1) {
          this.#inItems = false
          from = at
        }
      }
    }
    if (!this.#inItems) this.#envelope.push(chunk.subarray(from))
    else if (this.#depth > 2) this.#item.push(chunk.subarray(from))
    return items
  }

  /** The answer without its items. Throws a SyntaxError when it was cut off or is not JSON. */
  envelope(): unknown {
    return JSON.parse(Buffer.concat(this.#envelope).toString('utf8'))
  }

  /** Whether the array that begins here is the value of the key `items` of the answer itself. */
  #isItems(before: Buffer): boolean {
    const tail = Buffer.concat([...this.#envelope, before]).toString('latin1')
    return /"items"\s*:\s*$/.test(tail)
  }
}
