/** Says that the text is beyond the plain part of YAML. Not an error: the full parser takes over. */
export class NotPlain extends Error {}

// One object, so that giving up costs no stack trace.
const notPlain = new NotPlain('not plain')

export function giveUp(): never {
  throw notPlain
}

const wholeNumber = /^[-+]?[0-9]+$/
const fraction = /^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)$/
/** Rare numbers (0x, 0o, exponents, .inf, .nan): left to the full parser. */
const rareNumber = /^(?:0[ox]|[-+]?\.(?:inf|nan)|[-+]?[0-9.]+e)/i
const keywords = new Map<string, unknown>(
  [
    ['null', null],
    ['true', true],
    ['false', false],
  ].flatMap(([word, value]) => {
    const text = String(word)
    return [text, text.toUpperCase(), text.charAt(0).toUpperCase() + text.slice(1)].map(
      (form) => [form, value] as const,
    )
  }),
)
keywords.set('~', null)

/** What a scalar without quotes stands for in YAML 1.2's core schema. */
export function resolvePlain(text: string): unknown {
  const first = text.charCodeAt(0)
  const mayBeNumber = (first >= 0x30 && first <= 0x39) || first === 0x2b || first === 0x2d || first === 0x2e
  if (mayBeNumber) {
    if (wholeNumber.test(text) || fraction.test(text)) return Number(text)
    if (rareNumber.test(text)) giveUp()
    return text
  }
  if (text.length <= 5 && keywords.has(text)) return keywords.get(text)
  return text
}

/** Whether a scalar without quotes may start here. The rest of YAML's rules for it are left to the full parser. */
export function startsPlain(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  if (code >= 0x61 && code <= 0x7a) return true
  if ((code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39)) return true
  // _ . / + ~
  if (code === 0x5f || code === 0x2e || code === 0x2f || code === 0x2b || code === 0x7e) return true
  // "-" and ":" are indicators before a blank.
  const next = text.charCodeAt(at + 1)
  return (code === 0x2d || code === 0x3a) && next > 0x20 && next !== 0x2d
}

export interface Scalar {
  readonly value: string
  /** Where the text goes on. */
  readonly end: number
}

/** A scalar in quotes that begins at `at` and must end before `limit`. */
export function quoted(text: string, at: number, limit: number): Scalar {
  return text.charCodeAt(at) === 0x22 ? doubleQuoted(text, at, limit) : singleQuoted(text, at, limit)
}

function doubleQuoted(text: string, at: number, limit: number): Scalar {
  let escapes = false
  for (let end = at + 1; end < limit; end++) {
    const code = text.charCodeAt(end)
    if (code === 0x5c) {
      escapes = true
      end++
    } else if (code === 0x22) {
      const value = escapes ? unescaped(text.slice(at, end + 1)) : text.slice(at + 1, end)
      return { value, end: end + 1 }
    }
  }
  return giveUp()
}

/** The escapes that JSON and YAML share; YAML's others are left to the full parser. */
function unescaped(token: string): string {
  try {
    return JSON.parse(token) as string
  } catch {
    return giveUp()
  }
}

function singleQuoted(text: string, at: number, limit: number): Scalar {
  let doubled = false
  for (let end = at + 1; end < limit; end++) {
    if (text.charCodeAt(end) !== 0x27) continue
    if (end + 1 < limit && text.charCodeAt(end + 1) === 0x27) {
      doubled = true
      end++
      continue
    }
    const value = text.slice(at + 1, end)
    return { value: doubled ? value.replaceAll("''", "'") : value, end: end + 1 }
  }
  return giveUp()
}

const flowPlain = /[A-Za-z0-9_./+~-][A-Za-z0-9_./+-]*(?::[A-Za-z0-9_./+-]+)*/y

/** A scalar without quotes inside `[…]` or `{…}`: a careful subset. */
export function flowScalar(text: string, at: number): Scalar {
  flowPlain.lastIndex = at
  const [value] = flowPlain.exec(text) ?? giveUp()
  if (value === '-' || value.startsWith('--')) giveUp()
  return { value, end: at + value.length }
}
