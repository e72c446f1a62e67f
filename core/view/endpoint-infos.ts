import { create, toBinary } from '@bufbuild/protobuf'
import { globalPath, globalv1, localv1 } from '@kpng/api'
import { hash64 } from '../store/hash.js'
import { type EndpointRecord, none, type ServiceEntry } from '../store/index.js'
import { type DeleteItem, MessageItem, type SetItem } from './items.js'

// The endpoints of a service as relays are told of them. An endpoint's path holds the hash of all that is said of it: what
// changes is a new endpoint and a deleted one.

/** One source of them: the items stand where their records stand. */
interface SourceInfos {
  readonly records: readonly EndpointRecord[]
  readonly items: readonly SetItem[]
}

/** By the name of the source. */
export type EndpointInfos = ReadonlyMap<string, SourceInfos>

/** @param similar those of another revision: what did not change since is taken over */
export function endpointInfosOf(entry: ServiceEntry, similar: EndpointInfos | undefined): EndpointInfos {
  const infos = new Map<string, SourceInfos>()
  for (const [source, records] of entry.sources) {
    const known = similar?.get(source)
    if (known?.records === records) {
      infos.set(source, known)
      continue
    }
    const items = new Map(known?.records.map((record, index) => [record, known.items[index]]))
    infos.set(source, {
      records,
      items: records.map((record) => items.get(record) ?? endpointInfoItem(entry, source, record)),
    })
  }
  return infos
}

export function* itemsOfInfos(infos: EndpointInfos): Generator<SetItem> {
  for (const source of infos.values()) yield* byPath(source).values()
}

/** Adds what is new and what is gone. Costs what the changed sources hold. */
export function diffInfos(
  before: EndpointInfos,
  after: EndpointInfos,
  { sets, deletes }: { readonly sets: SetItem[]; readonly deletes: DeleteItem[] },
): void {
  for (const source of new Set([...before.keys(), ...after.keys()])) {
    if (before.get(source) === after.get(source)) continue
    const old = byPath(before.get(source))
    const now = byPath(after.get(source))
    for (const [path, item] of now) if (!old.has(path)) sets.push(item)
    for (const [path, { set }] of old) if (!now.has(path)) deletes.push({ set, path })
  }
}

/** A source may say the same twice. */
const byPath = (source: SourceInfos | undefined): Map<string, SetItem> =>
  new Map(source?.items.map((item) => [item.path, item]))

function endpointInfoItem({ namespace, name }: ServiceEntry, source: string, endpoint: EndpointRecord): SetItem {
  const info = endpointInfo(namespace, name, source, endpoint)
  info.hash = hash64(toBinary(globalv1.EndpointInfoSchema, info))
  const path = globalPath({ namespace, name, source, key: info.hash.toString(16) })
  return new MessageItem(localv1.Set.GLOBAL_ENDPOINT_INFOS, path, globalv1.EndpointInfoSchema, info)
}

function endpointInfo(
  namespace: string,
  serviceName: string,
  sourceName: string,
  endpoint: EndpointRecord,
): globalv1.EndpointInfo {
  const { v4, v6, hostname, ports, conditions, podName, node, zone, hints } = endpoint
  return create(globalv1.EndpointInfoSchema, {
    namespace,
    serviceName,
    sourceName,
    podName,
    endpoint: {
      hostname,
      ips: { v4: [...v4], v6: [...v6] },
      portOverrides: (ports ?? none).map(({ name, port, protocol }) => ({
        name,
        port,
        ...(protocol !== undefined && { protocol }),
      })),
    },
    conditions,
    noPorts: ports !== undefined && ports.length === 0,
    topology: { node, zone },
    ...(hints ? { hints: { zones: [...hints.zones], nodes: [...hints.nodes] } } : {}),
  })
}
