import { isFields, type Place, pathOf, shown } from '../../kubernetes/fields.js'

// What a file must look like before its values are read: which fields, and of which kind. Own code and no schema library, since it
// must say where a mistake is (for line and column), let unknown fields pass but tell them, and be quick on a million values.

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

/** A value is of another kind than its place asks for. */
export class WrongKind extends Error {
  readonly place: Place
  readonly #expected: string
  readonly #value: unknown

  /** @param is what the value is, as it can stand in a sentence */
  constructor(place: Place, expected: string, value: unknown, is = shown(value)) {
    super(`${pathOf(place) || 'The document'} is ${is}; ${expected} was expected.`)
    this.place = place
    this.#expected = expected
    this.#value = value
  }

  /** The same, said by somebody who knows that the checked value is itself inside another. */
  below(outer: Place): WrongKind {
    return new WrongKind([...outer, ...this.place], this.#expected, this.#value)
  }
}

/** Checks kinds, not values. Throws WrongKind; fields that the shape does not have are told to `onUnknown`. */
export function check<S extends Shape>(
  value: unknown,
  shape: S,
  onUnknown: (place: Place) => void,
): ValueOf<S> | null | undefined {
  walk(value, shape, [], onUnknown)
  return value as ValueOf<S> | null | undefined
}

const scalarKinds = {
  text: { type: 'string', expected: 'a text (numbers and true/false in quotes)' },
  number: { type: 'number', expected: 'a number' },
  flag: { type: 'boolean', expected: 'true or false' },
} as const

function walk(value: unknown, shape: Shape, path: (string | number)[], onUnknown: (place: Place) => void): void {
  if (value === undefined || value === null || shape === 'any') return
  if (typeof shape === 'string') {
    const { type, expected } = scalarKinds[shape]
    if (typeof value !== type) throw new WrongKind([...path], expected, value)
  } else if ('list' in shape) {
    if (!Array.isArray(value)) throw new WrongKind([...path], 'a list', value)
    for (let index = 0; index < value.length; index++) step(value[index], shape.list, index, path, onUnknown)
  } else {
    if (!isFields(value)) throw new WrongKind([...path], 'a map', value)
    for (const name of Object.keys(value)) {
      if ('texts' in shape) step(value[name], 'text', name, path, onUnknown)
      else if (Object.hasOwn(shape.fields, name)) step(value[name], shape.fields[name] as Shape, name, path, onUnknown)
      else if (shape.others !== 'allowed') onUnknown([...path, name])
    }
  }
}

function step(
  value: unknown,
  shape: Shape,
  name: string | number,
  path: (string | number)[],
  onUnknown: (place: Place) => void,
): void {
  path.push(name)
  walk(value, shape, path, onUnknown)
  path.pop()
}
