/** Control characters, and those that reorder text, hide in it, or break lines: a terminal obeys them. */
const obeyed = /[\p{Cc}\p{Bidi_Control}\u200b\u2028\u2029\ufeff]/gu

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A text of others as one line that a terminal only shows: `\u001b` instead of an escape. */
export const printable = (text: string): string => text.replace(obeyed, escaped)

/** The same for a text of several lines. In JSON it changes nothing but the spelling. */
export const printableLines = (text: string): string =>
  text.replace(obeyed, (character) => (character === '\n' || character === '\t' ? character : escaped(character)))
