import { KpngError } from '@kpng/api'
import { CORE_SCHEMA, loadAll, type State, YAMLException } from 'js-yaml'

/** Deeper nesting is a mistake or an attack. It is js-yaml's own limit too. */
export const maxDepth = 100

/**
 * How many values a small file may stand for, aliases followed. A few lines of aliases can stand for billions. Without aliases a
 * file never stands for more values than it has characters.
 */
const maxValuesWithAliases = 1_000_000

/** The documents of a YAML or JSON file. Throws a KpngError with file, line and column if the text is neither. */
export function readDocuments(file: string, text: string): unknown[] {
  const json = readJson(text)
  if (json) return json
  const share = sharedStrings()
  let lastBegun = 0
  const listener = (event: string, state: State) => {
    if (event === 'open') lastBegun = state.position
    else if (typeof state.result === 'string') state.result = share(state.result)
  }
  try {
    // YAML 1.2: `yes` is a text, dates stay texts, a key may be given once.
    const documents = loadAll(text, null, { schema: CORE_SCHEMA, listener })
    if (text.includes('*')) checkAliases(file, text, documents)
    return documents
  } catch (error) {
    throw error instanceof YAMLException ? notYaml(file, text, error, lastBegun) : error
  }
}

/** JSON is YAML, but JSON.parse reads it in a fraction of the time. */
function readJson(text: string): unknown[] | undefined {
  const first = text.trimStart()[0]
  if (first !== '{' && first !== '[') return undefined
  try {
    return [JSON.parse(text)]
  } catch {
    return undefined
  }
}

function notYaml(file: string, text: string, { reason, mark }: YAMLException, lastBegun: number): KpngError {
  // js-yaml points at the end of the file; the quote that is not closed may be thousands of lines above.
  const isUnclosed = /^unexpected end of the stream within a \w+ quoted scalar/.test(reason)
  const { line, column } = positionAt(text, isUnclosed ? contentAfter(text, lastBegun) : mark.position)
  const isTooDeep = reason.startsWith('nesting exceeded')
  const why = isTooDeep
    ? `Values are nested more than ${maxDepth} levels deep. Check the brackets.`
    : `This is not valid YAML: ${isUnclosed ? 'the quote is not closed' : reason}.`
  // No cause: its message repeats parts of the file over several lines.
  return new KpngError('invalid', `${file}:${line}:${column}: ${why}`)
}

/**
 * Makes equal strings one string, and each of them a string of its own: js-yaml cuts strings out of the text, and V8 would keep
 * the whole text in memory for one such piece.
 */
function sharedStrings(): (value: string) => string {
  const strings = new Map<string, string>()
  return (value) => {
    let known = strings.get(value)
    if (known === undefined) {
      known = value.length < 13 ? value : ` ${value}`.slice(1)
      strings.set(known, known)
    }
    return known
  }
}

/** Aliases are references, so reading them is cheap, but walking through the values is not. */
function checkAliases(file: string, text: string, documents: readonly unknown[]): void {
  const limit = Math.max(maxValuesWithAliases, text.length)
  let values = 0
  const count = (value: unknown, depth: number): void => {
    values++
    if (values > limit || depth > maxDepth) {
      const { line, column } = positionAt(text, Math.max(0, text.search(/(?<=^|[\s,[{])\*[^\s,[\]{}]/m)))
      const why = `The aliases of this file stand for more than ${limit} values, or for themselves`
      throw new KpngError('invalid', `${file}:${line}:${column}: ${why}. Write the values instead.`)
    }
    if (typeof value !== 'object' || value === null) return
    for (const inner of Object.values(value)) count(inner, depth + 1)
  }
  for (const document of documents) count(document, 0)
}

export interface Position {
  readonly line: number
  readonly column: number
}

/**
 * Where a value, or the key that it belongs to, stands in a text that was read before. It reads the text again: this is for error
 * messages. Of a value that cannot be found it returns the position of the innermost value around it.
 */
export function locate(
  text: string,
  document: number,
  place: readonly (string | number)[],
  what: 'key' | 'value' = 'value',
): Position {
  const { documents, positions } = readWithPositions(text)
  let value = documents[document]
  let offset = positions.get(value)?.offset ?? 0
  for (const [index, step] of place.entries()) {
    const keys = positions.get(value)?.keys
    const isLast = index === place.length - 1
    value = isCollection(value) ? value[step] : undefined
    const found = isLast && what === 'key' ? undefined : offsetOf(value, positions)
    offset = found ?? keys?.get(String(step)) ?? offset
  }
  return positionAt(text, offset)
}

type Collection = Readonly<Record<string | number, unknown>>
const isCollection = (value: unknown): value is Collection =>
  typeof value === 'object' && value !== null && !(value instanceof Scalar)

const offsetOf = (value: unknown, positions: Positions): number | undefined =>
  value instanceof Scalar ? value.offset : positions.get(value)?.offset

/** By map or list. */
type Positions = Map<unknown, { readonly offset: number; readonly keys: ReadonlyMap<string, number> }>

/** js-yaml tells when it begins and ends a value, and takes the value from `state.result`: a scalar becomes one with a position. */
function readWithPositions(text: string): { documents: unknown[]; positions: Positions } {
  const positions: Positions = new Map()
  const open: { readonly offset: number; readonly keys: Map<string, number> }[] = []
  const listener = (event: string, state: State) => {
    if (event === 'open') {
      open.push({ offset: state.position, keys: new Map() })
      return
    }
    const node = open.pop()
    if (!node || state.result instanceof Scalar) return
    const offset = contentAfter(text, node.offset)
    if (typeof state.result !== 'object' || state.result === null) {
      state.result = new Scalar(String(state.result), offset, (key) => open.at(-1)?.keys.set(key, offset))
    } else if (!positions.has(state.result)) positions.set(state.result, { offset, keys: node.keys })
  }
  try {
    return { documents: loadAll(text, null, { schema: CORE_SCHEMA, json: true, listener }), positions }
  } catch {
    return { documents: [], positions }
  }
}

class Scalar {
  readonly text: string
  readonly offset: number
  readonly #onKey: (key: string) => void

  constructor(text: string, offset: number, onKey: (key: string) => void) {
    this.text = text
    this.offset = offset
    this.#onKey = onKey
  }

  /** js-yaml calls this when the scalar is a key, while the map that it belongs to is the innermost open value. */
  toString(): string {
    this.#onKey(this.text)
    return this.text
  }

  /** Without a tag of its own js-yaml would not call `toString`. */
  get [Symbol.toStringTag](): string {
    return 'Scalar'
  }
}

/** Passes over blanks, line ends and comments. */
function contentAfter(text: string, offset: number): number {
  const skipped = /(?:\s+|(?<=\s|^)#[^\r\n]*)*/y
  skipped.lastIndex = offset
  return offset + (skipped.exec(text)?.[0].length ?? 0)
}

function positionAt(text: string, offset: number): Position {
  let line = 1
  let start = 0
  for (const { index, 0: end } of text.slice(0, offset).matchAll(/\r\n?|\n/g)) {
    line++
    start = index + end.length
  }
  return { line, column: offset - start + 1 }
}
