import { type Message, toBinary } from '@bufbuild/protobuf'
import type { GenMessage } from '@bufbuild/protobuf/codegenv2'
import { globalv1, localv1 } from '@kpng/api'
import { type EndpointPort, type EndpointRecord, none } from '../store/index.js'
import { type Availability, Scope, type SelectedEndpoint } from './selection.js'

/** A thing that a change set adds or changes. Items are shared by all watchers that get the same thing. */
export interface SetItem {
  readonly set: localv1.Set
  readonly path: string
  readonly message: Message
  /** The encoded message. */
  encode(): Uint8Array
  /** The item as it goes over the wire, kept here by the api sink: made once, shared by every watcher. */
  frame?: Buffer
}

/** A thing that a change set takes away. */
export interface DeleteItem {
  readonly set: localv1.Set
  readonly path: string
  frame?: Buffer
}

/** An item whose message exists anyway. */
export class MessageItem<T extends Message, S extends localv1.Set = localv1.Set> implements SetItem {
  readonly set: S
  readonly path: string
  readonly message: T
  readonly #schema: GenMessage<T>
  frame?: Buffer

  constructor(set: S, path: string, schema: GenMessage<T>, message: T) {
    this.set = set
    this.path = path
    this.#schema = schema
    this.message = message
  }

  encode(): Uint8Array {
    return toBinary(this.#schema, this.message)
  }
}

/** An endpoint as one kind of node sees it. Its message is made when asked for: there are too many of them to keep. */
export class EndpointItem implements SetItem, SelectedEndpoint {
  readonly path: string
  readonly endpoint: EndpointRecord
  readonly local: boolean
  readonly scopes: number
  readonly portScopes: readonly number[] | undefined
  readonly #ports: readonly localv1.PortMapping[]
  frame?: Buffer

  constructor(path: string, selected: SelectedEndpoint, ports: readonly localv1.PortMapping[]) {
    this.path = path
    this.endpoint = selected.endpoint
    this.local = selected.local
    this.scopes = selected.scopes
    this.portScopes = selected.portScopes
    this.#ports = ports
  }

  get set(): localv1.Set.ENDPOINTS {
    return localv1.Set.ENDPOINTS
  }

  /** The same endpoint as its own node sees it. */
  asLocal(): EndpointItem {
    const { path, endpoint, scopes, portScopes } = this
    return new EndpointItem(path, { endpoint, local: true, scopes, portScopes }, this.#ports)
  }

  /** Written out rather than made by `create`: this is the one message there are tens of thousands of at the start. */
  get message(): localv1.Endpoint {
    const { hostname, v4, v6, ports, conditions } = this.endpoint
    const message: localv1.Endpoint = {
      $typeName: 'localv1.Endpoint',
      hostname,
      ips: { $typeName: 'localv1.IPSet', v4: [...v4], v6: [...v6] },
      local: this.local,
      portOverrides: this.portScopes ? this.#scopedOverrides(this.portScopes) : portOverridesOf(ports),
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
    return toBinary(localv1.EndpointSchema, this.message)
  }

  /** Whether it is the item of this selection. */
  isOf({ endpoint, local, scopes, portScopes }: SelectedEndpoint): boolean {
    if (this.portScopes || portScopes) return false
    return this.endpoint === endpoint && this.local === local && this.scopes === scopes
  }

  /** Whether a node that has the other item would learn nothing from this one. */
  saysTheSame(other: EndpointItem): boolean {
    return this === other || other.isOf(this) || Buffer.compare(this.encode(), other.encode()) === 0
  }

  #scopedOverrides(portScopes: readonly number[]): localv1.PortName[] {
    return (this.endpoint.ports ?? none).map((listed) => {
      const { name } = listed
      const portName = portNameOf(listed)
      const own = portScopes[this.#ports.findIndex((candidate) => candidate.name === name)]
      if (own !== undefined && own !== this.scopes) portName.scopes = scopesMessages[own] as localv1.EndpointScopes
      return portName
    })
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

const portNameOf = ({ name, port, protocol }: EndpointPort): localv1.PortName => ({
  $typeName: 'localv1.PortName',
  name,
  port,
  ...(protocol !== undefined && { protocol }),
})

interface PortOverrides {
  readonly of: EndpointRecord['ports']
  readonly message: localv1.PortName[]
}

let lastOverrides = portOverrides(undefined)

/** The endpoints of a slice share the list of its ports and come one after the other: their messages share it too. */
function portOverridesOf(ports: EndpointRecord['ports']): localv1.PortName[] {
  if (lastOverrides.of !== ports) lastOverrides = portOverrides(ports)
  return lastOverrides.message
}

function portOverrides(ports: EndpointRecord['ports']): PortOverrides {
  const message = (ports ?? none).map((port) => Object.freeze(portNameOf(port)))
  return { of: ports, message: Object.freeze(message) as localv1.PortName[] }
}

/** A service, and for each of its ports whether any endpoint in the cluster serves it: the same to all nodes. */
export class ServiceItem extends MessageItem<localv1.Service, localv1.Set.SERVICES> {
  readonly #service: localv1.Service
  readonly #availability: readonly Availability[]

  constructor(path: string, service: localv1.Service, availability: readonly Availability[]) {
    const ports = service.ports.map((port, index) => ({ ...port, hasEndpoints: flagsOf(availability[index]) }))
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
