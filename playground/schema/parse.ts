import { KpngError } from '@kpng/api'

/**
 * The notation of the `*-types.ts` files: a line `Name: description` starts a type, `object Name: description` one that has the
 * fields of every object as well. Indented lines are its fields:
 *
 *     ports []ServicePort! #1 merge=port map=port,protocol =default | description
 *
 * `#` is the field's number in protobuf (absent: not readable from it), `[]` is a list, `{}` a map, `!` means required, a word alone (`object`) is an object nobody looks into. `merge` is the
 * key by which a strategic merge patch matches list items (alone: items are the keys), `map`, `set` and `atomic` say how
 * server-side apply sees the list or map; a list is atomic unless it says otherwise.
 */
export interface Definition {
  readonly name: string
  readonly description: string
  readonly fields: ReadonlyMap<string, Field>
}

export interface Field {
  readonly type: string
  readonly shape: 'one' | 'list' | 'map'
  readonly required: boolean
  readonly number?: number
  readonly description: string
  /** Strategic merge: the key of list items; '' when the items themselves are merged; absent: the list is replaced. */
  readonly mergeKey?: string
  /** Server-side apply: keys of list items. */
  readonly mapKeys?: readonly string[]
  readonly set: boolean
  readonly atomic: boolean
  readonly defaultValue?: string
}

const fieldLine = /^ {2}(\w+) (\[\]|\{\})?(\w+)(!?)((?: (?!\| )\S+)*)(?: \| (.*))?$/

function parseField(text: string, line: string): [string, Field] {
  const match = fieldLine.exec(line)
  if (!match)
    throw new KpngError('invalid', `The schema line "${line}" of ${text} is not a field; see schema/parse.ts.`)
  const [, name = '', shape, type = '', required, words = '', description = ''] = match
  const hints = words.trim().split(' ').filter(Boolean)
  const hintOf = (key: string) => hints.find((hint) => hint.startsWith(`${key}=`))?.slice(key.length + 1)
  const mergeKey = hints.includes('merge') ? '' : hintOf('merge')
  const mapKeys = hintOf('map')?.split(',')
  const defaultValue = hintOf('')
  const number = hints.find((hint) => hint.startsWith('#'))?.slice(1)
  const field: Field = {
    type,
    shape: shape === '[]' ? 'list' : shape === '{}' ? 'map' : 'one',
    required: required === '!',
    description,
    set: hints.includes('set'),
    atomic: hints.includes('atomic') || (shape === '[]' && !mapKeys && !hints.includes('set')),
    ...(number === undefined ? {} : { number: Number(number) }),
    ...(mergeKey === undefined ? {} : { mergeKey }),
    ...(mapKeys === undefined ? {} : { mapKeys }),
    ...(defaultValue === undefined ? {} : { defaultValue }),
  }
  return [name, field]
}

const objectFields = [
  '  apiVersion string | The version of the API this object is written in.',
  '  kind string | The kind of this object.',
  '  metadata ObjectMeta #1 | Names, labels and life cycle.',
]

/** The types of one API package; `prefix` makes their full names (`io.k8s.api.core.v1.`). */
export function parseTypes(prefix: string, text: string): Definition[] {
  const definitions: Definition[] = []
  let fields = new Map<string, Field>()
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    if (line.startsWith('  ')) {
      const [name, field] = parseField(prefix, line)
      fields.set(name, field)
      continue
    }
    const [, object, name, description = ''] = /^(object )?(\w+): (.*)$/.exec(line) ?? []
    fields = new Map(object ? objectFields.map((text) => parseField(prefix, text)) : [])
    definitions.push({ name: prefix + name, description, fields })
  }
  return definitions
}
