import { nearestNames } from '@kpng/api'
import { isFields, type Place, pathOf, shown } from '../../kubernetes/fields.js'

// What a file must look like before its values are read: which fields it may have, and of which kind. This is not done with a
// schema library, because it must say where a mistake is (for line and column) and be fast on a million values.

export type Shape =
  | 'text'
  | 'number'
  | 'flag'
  | 'any'
  | { readonly list: Shape }
  | { readonly texts: true }
  | { readonly fields: { readonly [name: string]: Shape }; readonly others?: 'allowed' }

/** What a checked value can be. Any field may be missing or null. */
export type ValueOf<S> = S extends 'text'
  ? string
  : S extends 'number'
    ? number
    : S extends 'flag'
      ? boolean
      : S extends { readonly list: infer Item }
        ? readonly (ValueOf<Item> | null)[]
        : S extends { readonly texts: true }
          ? { readonly [key: string]: string }
          : S extends { readonly fields: infer Fields }
            ? { readonly [Name in keyof Fields]?: ValueOf<Fields[Name]> | null }
            : unknown

/** A document does not have the shape that it must have. The message names the field. */
export class ShapeError extends Error {
  readonly place: Place
  /** Whether the mistake is the value at `place`, or the key that it belongs to. */
  readonly part: 'key' | 'value'
  readonly #describe: (path: string) => string

  constructor(place: Place, part: 'key' | 'value', describe: (path: string) => string) {
    super(describe(pathOf(place) || 'The document'))
    this.place = place
    this.part = part
    this.#describe = describe
  }

  /** The same error for a value that is itself inside of another one. */
  below(outer: Place): ShapeError {
    return new ShapeError([...outer, ...this.place], this.part, this.#describe)
  }
}

/** @param is how the value is called in the message */
export const wrongKind = (place: Place, expected: string, value: unknown, is = shown(value)): ShapeError =>
  new ShapeError(place, 'value', (path) => `${path} is ${is}; ${expected} was expected.`)

function unknownField(place: Place, known: readonly string[]): ShapeError {
  const [near] = nearestNames(String(place.at(-1)), known)
  const hint = near === undefined ? `Known here: ${known.join(', ')}.` : `Did you mean ${near}?`
  return new ShapeError(place, 'key', (path) => `${path} is not a field of a state file. ${hint}`)
}

/** Checks which fields there are and of which kind they are, but not their values. Throws ShapeError. */
export function check<S extends Shape>(value: unknown, shape: S): ValueOf<S> | null | undefined {
  walk(value, shape, [])
  return value as ValueOf<S> | null | undefined
}

const scalarKinds = {
  text: { type: 'string', expected: 'a text (numbers and true/false in quotes)' },
  number: { type: 'number', expected: 'a number' },
  flag: { type: 'boolean', expected: 'true or false' },
} as const

function walk(value: unknown, shape: Shape, path: (string | number)[]): void {
  if (value === undefined || value === null || shape === 'any') return
  if (typeof shape === 'string') {
    const { type, expected } = scalarKinds[shape]
    if (typeof value !== type) throw wrongKind([...path], expected, value)
  } else if ('list' in shape) {
    if (!Array.isArray(value)) throw wrongKind([...path], 'a list', value)
    for (let index = 0; index < value.length; index++) step(value[index], shape.list, index, path)
  } else {
    if (!isFields(value)) throw wrongKind([...path], 'a map', value)
    for (const name of Object.keys(value)) {
      if ('texts' in shape) step(value[name], 'text', name, path)
      else if (Object.hasOwn(shape.fields, name)) step(value[name], shape.fields[name] as Shape, name, path)
      else if (shape.others !== 'allowed') throw unknownField([...path, name], Object.keys(shape.fields))
    }
  }
}

function step(value: unknown, shape: Shape, name: string | number, path: (string | number)[]): void {
  path.push(name)
  walk(value, shape, path)
  path.pop()
}
