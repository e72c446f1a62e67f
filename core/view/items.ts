import { type Message, toBinary } from '@bufbuild/protobuf'
import type { GenMessage } from '@bufbuild/protobuf/codegenv2'
import { endpointBytes, globalv1, localv1 } from '@kpng/api'
import { type EndpointPort, type EndpointRecord, none } from '../store/index.js'
import { type Availability, Scope, type SelectedEndpoint } from './selection.js'

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

/** Things that are told together. */
export interface Batch<T> {
  readonly items: readonly T[]
  /** Whether many watchers are told these: then they all get the same array, and what is made from it can be shared. */
  readonly isShared: boolean
  /** The paths among the items that this watcher is not told: it is told its own instead. */
  readonly except?: ReadonlySet<string>
}

/** What one watcher is told, and nobody else. */
export const batchOf = <T>(items: readonly T[]): readonly Batch<T>[] =>
  items.length > 0 ? [{ items, isShared: false }] : none

/** What all watchers are told that see the same. */
export const sharedBatchOf = <T>(items: readonly T[]): readonly Batch<T>[] =>
  items.length > 0 ? [{ items, isShared: true }] : none

/** What a watcher shares with others and, for some paths, its own instead. */
export function mixedBatches<T extends { readonly path: string }>(
  shared: readonly T[],
  paths: ReadonlySet<string>,
  own: readonly T[],
): readonly Batch<T>[] {
  let left = shared.length
  for (const { path } of shared) if (paths.has(path)) left--
  if (left === shared.length) return [...sharedBatchOf(shared), ...batchOf(own)]
  return left === 0 ? batchOf(own) : [{ items: shared, isShared: true, except: paths }, ...batchOf(own)]
}

/** The same in one batch, of which all frames are shared. The batches have no exceptions. */
export const inOneBatch = <T>(batches: readonly Batch<T>[]): readonly Batch<T>[] =>
  batches.length < 2 ? batches : sharedBatchOf(batches.flatMap(({ items }) => items))

/** One batch without what is in some others that were put into it. */
export function without<T extends { readonly path: string }>(
  batches: readonly Batch<T>[],
  others: readonly Batch<T>[],
): readonly Batch<T>[] {
  const except = new Set(others.flatMap(({ items }) => items.map(({ path }) => path)))
  if (except.size === 0) return batches
  return batches.flatMap((batch) => (batch.items.length === except.size ? none : { ...batch, except }))
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

/** The ports of a service's endpoints as messages. The endpoints of a slice share the list of its ports: their messages share it too. */
export class PortOverrides {
  readonly #servicePorts: readonly localv1.PortMapping[]
  #last: { readonly of: EndpointRecord['ports']; readonly messages: localv1.PortName[] } | undefined

  constructor(servicePorts: readonly localv1.PortMapping[]) {
    this.#servicePorts = servicePorts
  }

  of({ endpoint: { ports }, scopes, portScopes }: SelectedEndpoint): localv1.PortName[] {
    if (portScopes) return this.#withScopes(ports, scopes, portScopes)
    if (!this.#last || this.#last.of !== ports) {
      const messages = (ports ?? none).map((port) => Object.freeze(portName(port)))
      this.#last = { of: ports, messages: Object.freeze(messages) as localv1.PortName[] }
    }
    return this.#last.messages
  }

  #withScopes(ports: EndpointRecord['ports'], scopes: number, portScopes: readonly number[]): localv1.PortName[] {
    return (ports ?? none).map((port) => {
      const own = portScopes[this.#servicePorts.findIndex(({ name }) => name === port.name)]
      if (own === undefined || own === scopes) return portName(port)
      return { ...portName(port), scopes: scopesMessages[own] as localv1.EndpointScopes }
    })
  }
}

const portName = ({ name, port, protocol }: EndpointPort): localv1.PortName => ({
  $typeName: 'localv1.PortName',
  name,
  port,
  ...(protocol !== undefined && { protocol }),
})

/** An endpoint as one kind of node sees it. Its message is made when asked for: there are too many of them to keep. */
export class EndpointItem implements SetItem, SelectedEndpoint {
  readonly path: string
  readonly endpoint: EndpointRecord
  readonly local: boolean
  readonly scopes: number
  readonly portScopes: readonly number[] | undefined
  readonly #overrides: PortOverrides

  constructor(path: string, { endpoint, local, scopes, portScopes }: SelectedEndpoint, overrides: PortOverrides) {
    this.path = path
    this.endpoint = endpoint
    this.local = local
    this.scopes = scopes
    this.portScopes = portScopes
    this.#overrides = overrides
  }

  get set(): localv1.Set.ENDPOINTS {
    return localv1.Set.ENDPOINTS
  }

  /**
   * Written out rather than made by `create`: this is the one message there are tens of thousands of at the start. For the same
   * reason it shares its lists with the record.
   */
  get message(): localv1.Endpoint {
    const { hostname, v4, v6, conditions } = this.endpoint
    const message: localv1.Endpoint = {
      $typeName: 'localv1.Endpoint',
      hostname,
      ips: { $typeName: 'localv1.IPSet', v4: v4 as string[], v6: v6 as string[] },
      local: this.local,
      portOverrides: this.#overrides.of(this),
      scopes: scopesMessages[this.scopes] as localv1.EndpointScopes,
    }
    const { ready, serving, terminating } = conditions
    // Plainly ready endpoints, nearly all, leave the field out.
    if (!ready || !serving || terminating) {
      message.conditions = { $typeName: 'localv1.EndpointConditions', ready, serving, terminating }
    }
    return message
  }

  encode(): Uint8Array {
    return endpointBytes(this.message)
  }

  /** Whether it is the item of this selection. */
  isOf({ endpoint, local, scopes, portScopes }: SelectedEndpoint): boolean {
    if (this.portScopes || portScopes) return false
    return this.endpoint === endpoint && this.local === local && this.scopes === scopes
  }
}

/** Every combination, shared by all endpoints. */
const scopesMessages: readonly localv1.EndpointScopes[] = Array.from({ length: 8 }, (_, bits) =>
  Object.freeze({
    $typeName: 'localv1.EndpointScopes',
    internal: (bits & Scope.internal) !== 0,
    external: (bits & Scope.external) !== 0,
    cluster: (bits & Scope.cluster) !== 0,
  }),
)

/** Whether a watcher that has the one would learn nothing from the other. By content too: a thing may change and change back. */
export const sayTheSame = (a: SetItem, b: SetItem): boolean =>
  a === b || (a instanceof EndpointItem && b instanceof EndpointItem && a.isOf(b)) || equalBytes(a.encode(), b.encode())

const equalBytes = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0

/** A service, and for each of its ports whether any endpoint in the cluster serves it: the same to all nodes. */
export class ServiceItem extends MessageItem<localv1.Service, localv1.Set.SERVICES> {
  readonly batches: readonly Batch<ServiceItem>[] = sharedBatchOf([this])
  readonly #service: localv1.Service
  readonly #availability: readonly Availability[]

  constructor(path: string, service: localv1.Service, availability: readonly Availability[]) {
    const ports = service.ports.map((port, index) => ({ ...port, servedFamilies: flagsOf(availability[index]) }))
    super(localv1.Set.SERVICES, path, localv1.ServiceSchema, { ...service, ports })
    this.#service = service
    this.#availability = availability
  }

  /** Whether it is the item of this service, with endpoints there. */
  isOf(service: localv1.Service, availability: readonly Availability[]): boolean {
    const known = this.#availability
    return (
      this.#service === service &&
      availability.every(({ v4, v6 }, port) => v4 === known[port]?.v4 && v6 === known[port]?.v6)
    )
  }
}

const flagsOf = (available: Availability | undefined): localv1.FamilyFlags => ({
  $typeName: 'localv1.FamilyFlags',
  v4: available?.v4 ?? false,
  v6: available?.v6 ?? false,
})

type NodeInfoItem = MessageItem<globalv1.Node, localv1.Set.NODES>
type ServiceCidrItem = MessageItem<localv1.ServiceCIDR, localv1.Set.SERVICE_CIDRS>

/** What a node can be told. */
export type NodeItem = ServiceItem | EndpointItem | NodeInfoItem | ServiceCidrItem

export const nodeItem = (node: globalv1.Node): NodeInfoItem =>
  new MessageItem(localv1.Set.NODES, node.name, globalv1.NodeSchema, node)

export const serviceCidrItem = (cidr: localv1.ServiceCIDR): ServiceCidrItem =>
  new MessageItem(localv1.Set.SERVICE_CIDRS, cidr.name, localv1.ServiceCIDRSchema, cidr)
