import { KpngError } from '@kpng/api'

/** Keeps some of an object's labels (or annotations). */
export type KeyFilter = (labels: Readonly<Record<string, string>>) => Record<string, string>

/** Which labels and annotations of an object are passed on. */
export interface KeptKeys {
  readonly labels: KeyFilter
  readonly annotations: KeyFilter
}

/** The filters for globs of label and annotation keys. */
export const keptKeys = (labels: readonly string[] = [], annotations: readonly string[] = []): KeptKeys => ({
  labels: keyFilter(labels),
  annotations: keyFilter(annotations),
})

/**
 * Keeps the entries whose key matches one of the globs. Without globs it keeps none: labels that nobody asked for would only
 * cause needless changes. `*` any text, `?` one character, `[abc]`, `[a-z]`, `[!abc]`, `{one,two}`, `\` takes the next one literally.
 */
export function keyFilter(globs: readonly string[]): KeyFilter {
  const patterns = globs.map(globToRegExp)
  return (labels) => {
    const kept: Record<string, string> = {}
    if (patterns.length === 0) return kept
    for (const [key, value] of Object.entries(labels)) {
      if (patterns.some((pattern) => pattern.test(key))) kept[key] = value
    }
    return kept
  }
}

function globToRegExp(glob: string): RegExp {
  const refuse = (why: string): never => {
    throw new KpngError(
      'usage',
      `The key pattern ${JSON.stringify(glob)} cannot be used: ${why}. Write something like topology.kubernetes.io/* or {a,b}.example.com/?.`,
    )
  }
  if (glob === '') refuse('it is empty')
  let source = ''
  let depth = 0
  for (let at = 0; at < glob.length; at++) {
    const character = glob.charAt(at)
    if (character === '*') source += '.*'
    else if (character === '?') source += '.'
    else if (character === '\\') source += literal(glob.charAt(++at) || refuse('it ends with a backslash'))
    else if (character === '{') {
      depth++
      source += '(?:'
    } else if (character === '}') {
      if (depth-- === 0) refuse('a "}" has no "{"')
      source += ')'
    } else if (character === ',' && depth > 0) source += '|'
    else if (character === ']') refuse('a "]" has no "["')
    else if (character === '[') {
      const end = glob.indexOf(']', at + 1)
      if (end < 0) refuse('a "[" is not closed')
      source += characterClass(glob.slice(at + 1, end), refuse)
      at = end
    } else source += literal(character)
  }
  if (depth > 0) refuse('a "{" is not closed')
  return new RegExp(`^(?:${source})$`, 'su')
}

/** Outside a character class, where a hyphen must not be escaped. */
const literal = (character: string): string => (character === '-' ? character : escaped(character))

const escaped = (character: string): string => character.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&')

function characterClass(text: string, refuse: (why: string) => never): string {
  const negated = text.startsWith('!')
  const members = negated ? text.slice(1) : text
  if (members === '') refuse('a "[]" is empty')
  const range = /^(.)-(.)$/su.exec(members)
  if (range) {
    const [, from = '', to = ''] = range
    if (from > to) refuse(`the range [${members}] runs backwards`)
    return `[${negated ? '^' : ''}${escaped(from)}-${escaped(to)}]`
  }
  return `[${negated ? '^' : ''}${[...members].map(escaped).join('')}]`
}
