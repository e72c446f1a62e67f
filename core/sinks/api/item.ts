import { type Message, toBinary } from '@bufbuild/protobuf'
import type { GenMessage } from '@bufbuild/protobuf/codegenv2'
import { endpointBytes, endpointPath, globalv1, localv1 } from '@kpng/api'
import { type Changed, sameMessage } from '../../store/index.js'
import type { NodeEndpoint } from '../../view/index.js'

/** A thing that a change set adds or changes. Items are shared by all watchers that get the same thing. */
export interface SetItem {
  readonly set: localv1.Set
  readonly path: string
  readonly message: Message
  /** The encoded message. */
  encode(): Uint8Array
}

/** A thing that a change set takes away. */
export interface DeleteItem {
  readonly set: localv1.Set
  readonly path: string
}

/** An item that has its message, or makes it when asked for: a sender can then leave out an item that cannot be made. */
export class MessageItem<T extends Message, S extends localv1.Set = localv1.Set> implements SetItem {
  readonly set: S
  readonly path: string
  readonly #schema: GenMessage<T>
  #message: T | (() => T)

  constructor(set: S, path: string, schema: GenMessage<T>, message: T | (() => T)) {
    this.set = set
    this.path = path
    this.#schema = schema
    this.#message = message
  }

  get message(): T {
    if (typeof this.#message === 'function') this.#message = this.#message()
    return this.#message
  }

  encode(): Uint8Array {
    return toBinary(this.#schema, this.message)
  }
}

/** An endpoint of a node's view. Its message is made when asked for: there are too many of them to keep. */
export class EndpointItem implements SetItem {
  readonly path: string
  readonly #endpoint: NodeEndpoint

  constructor(service: string, endpoint: NodeEndpoint) {
    this.path = endpointPath(service, endpoint.key)
    this.#endpoint = endpoint
  }

  get set(): localv1.Set.ENDPOINTS {
    return localv1.Set.ENDPOINTS
  }

  get message(): localv1.Endpoint {
    return this.#endpoint.message
  }

  encode(): Uint8Array {
    return endpointBytes(this.message)
  }
}

type ServiceItem = MessageItem<localv1.Service, localv1.Set.SERVICES>
type NodeInfoItem = MessageItem<globalv1.Node, localv1.Set.NODES>
type ServiceCidrItem = MessageItem<localv1.ServiceCIDR, localv1.Set.SERVICE_CIDRS>

/** What a node can be told. */
export type NodeItem = ServiceItem | EndpointItem | NodeInfoItem | ServiceCidrItem

export const serviceItem = (path: string, service: localv1.Service): ServiceItem =>
  new MessageItem(localv1.Set.SERVICES, path, localv1.ServiceSchema, service)

export const nodeItem = (node: globalv1.Node): NodeInfoItem =>
  new MessageItem(localv1.Set.NODES, node.name, globalv1.NodeSchema, node)

export const serviceCidrItem = (cidr: localv1.ServiceCIDR): ServiceCidrItem =>
  new MessageItem(localv1.Set.SERVICE_CIDRS, cidr.name, localv1.ServiceCIDRSchema, cidr)

/** Adds what is told of things that stand alone: nodes, service CIDRs. */
export function collect<T, Item extends SetItem>(
  changes: Iterable<readonly [string, Changed<T>]>,
  set: localv1.Set,
  itemOf: (thing: T) => Item,
  sets: Item[],
  deletes: DeleteItem[],
  pathOf = (name: string) => name,
): void {
  for (const [name, { before, after }] of changes) {
    if (sameMessage(before, after)) continue
    if (after === undefined) deletes.push({ set, path: pathOf(name) })
    else sets.push(itemOf(after))
  }
}
