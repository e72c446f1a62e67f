import { type DescMessage, fromJson, type JsonValue, type Message, toBinary, toJson } from '@bufbuild/protobuf'
import { globalv1, localv1 } from '@kpng/api'

// A record is a text file, one JSON object per line: the changes of a cluster in the order in which they came, with their times.
// The first line says what it is. Each change set is the operations that relays are told, ended by `sync`. Lines can be searched,
// counted and cut with the usual tools; a record that ends in the middle of a line or of a change set is good up to there.

export const recordVersion = 1

/** The first line. */
export interface RecordHead {
  readonly kpng: 'record'
  readonly version: number
  /** When the record began, as an ISO time. */
  readonly startedAt: string
}

export type RecordLine =
  /** What was known before is void: the whole state follows. */
  | { readonly op: 'reset' }
  | { readonly op: 'set'; readonly set: string; readonly path: string; readonly message: JsonValue }
  | { readonly op: 'delete'; readonly set: string; readonly path: string }
  /** Ends a change set. `atMs`: milliseconds since the record began. */
  | { readonly op: 'sync'; readonly atMs: number }

const schemas: ReadonlyMap<localv1.Set, DescMessage> = new Map<localv1.Set, DescMessage>([
  [localv1.Set.GLOBAL_SERVICE_INFOS, globalv1.ServiceInfoSchema],
  [localv1.Set.GLOBAL_ENDPOINT_INFOS, globalv1.EndpointInfoSchema],
  [localv1.Set.GLOBAL_NODE_INFOS, globalv1.NodeInfoSchema],
  [localv1.Set.GLOBAL_SERVICE_CIDRS, localv1.ServiceCIDRSchema],
])

const setNames = new Map([...schemas.keys()].map((set) => [localv1.Set[set] as string, set]))

/** The set of a name in a record; undefined if this version does not know it. */
export const setNamed = (name: string): localv1.Set | undefined => setNames.get(name)

export function setLine(set: localv1.Set, path: string, message: Message): string {
  const json = toJson(schemaOf(set), message)
  return JSON.stringify({ op: 'set', set: localv1.Set[set], path, message: json } satisfies RecordLine)
}

export const deleteLine = (set: localv1.Set, path: string): string =>
  JSON.stringify({ op: 'delete', set: localv1.Set[set] ?? '', path } satisfies RecordLine)

/** The bytes of a message in a record, as a relay would get them. Throws if it is not such a message. */
export function messageBytes(set: localv1.Set, message: JsonValue): Uint8Array {
  const schema = schemaOf(set)
  // A newer version may have written fields that this one does not know.
  return toBinary(schema, fromJson(schema, message, { ignoreUnknownFields: true }))
}

function schemaOf(set: localv1.Set): DescMessage {
  const schema = schemas.get(set)
  if (!schema) throw new Error(`The set ${localv1.Set[set] ?? set} is not part of a record.`)
  return schema
}
