import { configTypes } from './config-types.js'
import { appsTypes, autoscalingTypes, discoveryTypes, eventsTypes, networkingTypes } from './group-types.js'
import { metaTypes } from './meta-types.js'
import { nodeTypes } from './node-types.js'
import { type Definition, type Field, parseTypes } from './parse.js'
import { podTypes } from './pod-types.js'
import { serviceTypes } from './service-types.js'

const metaPrefix = 'io.k8s.apimachinery.pkg.apis.meta.v1.'
const corePrefix = 'io.k8s.api.core.v1.'

const packages: readonly [string, string][] = [
  [metaPrefix, metaTypes],
  [corePrefix, serviceTypes + nodeTypes + podTypes + configTypes],
  ['io.k8s.api.discovery.v1.', discoveryTypes],
  ['io.k8s.api.networking.v1.', networkingTypes],
  ['io.k8s.api.events.v1.', eventsTypes],
  ['io.k8s.api.apps.v1.', appsTypes],
  ['io.k8s.api.autoscaling.v1.', autoscalingTypes],
]

/** Every type of the API by its full name. One source for OpenAPI, strict decoding, strategic merge and apply. */
export const definitions: ReadonlyMap<string, Definition> = new Map(
  packages
    .flatMap(([prefix, text]) => parseTypes(prefix, text))
    .map((definition) => [definition.name, definition] as const),
)

const scalars: Readonly<Record<string, { type: string; format?: string }>> = {
  string: { type: 'string' },
  bytes: { type: 'string', format: 'byte' },
  boolean: { type: 'boolean' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  Time: { type: 'string', format: 'date-time' },
  MicroTime: { type: 'string', format: 'date-time' },
  Quantity: { type: 'string' },
  IntOrString: { type: 'string', format: 'int-or-string' },
}

/** What a field's type is: a scalar, another definition, or neither (an object nobody looks into). */
type Resolved =
  | { kind: 'scalar'; name: string; type: string; format?: string }
  | { kind: 'definition'; definition: Definition }
  | { kind: 'open' }

/** A type's name means one of its own package first, then of core, then of meta. */
export function resolve(owner: Definition, field: Field): Resolved {
  const scalar = scalars[field.type]
  if (scalar) return { kind: 'scalar', name: field.type, ...scalar }
  const own = owner.name.slice(0, owner.name.lastIndexOf('.') + 1)
  for (const prefix of [own, corePrefix, metaPrefix]) {
    const definition = definitions.get(prefix + field.type)
    if (definition) return { kind: 'definition', definition }
  }
  return { kind: 'open' }
}

/** The definition of a field's type, if it has one. */
export function definitionOf(owner: Definition | undefined, field: Field | undefined): Definition | undefined {
  const resolved = owner && field ? resolve(owner, field) : undefined
  return resolved?.kind === 'definition' ? resolved.definition : undefined
}
