import { type Message, toBinary } from '@bufbuild/protobuf'
import type { GenMessage } from '@bufbuild/protobuf/codegenv2'
import { globalv1, localv1 } from '@kpng/api'
import { none } from '../store/index.js'
import { Scope, type SelectedEndpoint } from './selection.js'

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
export class MessageItem<T extends Message> implements SetItem {
  readonly set: localv1.Set
  readonly path: string
  readonly message: T
  readonly #schema: GenMessage<T>
  frame?: Buffer

  constructor(set: localv1.Set, path: string, schema: GenMessage<T>, message: T) {
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
export class EndpointItem implements SetItem {
  readonly set = localv1.Set.ENDPOINTS
  readonly path: string
  readonly selected: SelectedEndpoint
  readonly #ports: readonly localv1.PortMapping[]
  #local: EndpointItem | undefined
  frame?: Buffer

  constructor(path: string, selected: SelectedEndpoint, ports: readonly localv1.PortMapping[]) {
    this.path = path
    this.selected = selected
    this.#ports = ports
  }

  /** The same endpoint as its own node sees it. */
  asLocal(): EndpointItem {
    this.#local ??= new EndpointItem(this.path, { ...this.selected, local: true }, this.#ports)
    return this.#local
  }

  /** Written out rather than made by `create`: this is the one message there are tens of thousands of at the start. */
  get message(): localv1.Endpoint {
    const { endpoint, local, scopes, portScopes } = this.selected
    const message: localv1.Endpoint = {
      $typeName: 'localv1.Endpoint',
      hostname: endpoint.hostname,
      ips: { $typeName: 'localv1.IPSet', v4: [...endpoint.v4], v6: [...endpoint.v6] },
      local,
      portOverrides: (endpoint.ports ?? none).map(({ name, port }) => {
        const portName: localv1.PortName = { $typeName: 'localv1.PortName', name, port }
        const own = portScopes?.[this.#ports.findIndex((candidate) => candidate.name === name)]
        if (own !== undefined && own !== scopes) portName.scopes = scopesMessage(own)
        return portName
      }),
      scopes: scopesMessage(scopes),
    }
    const { ready, serving, terminating } = endpoint.conditions
    // Plainly ready endpoints, nearly all, leave the field out.
    if (!ready || !serving || terminating) {
      message.conditions = { $typeName: 'localv1.EndpointConditions', ready, serving, terminating }
    }
    return message
  }

  encode(): Uint8Array {
    return toBinary(localv1.EndpointSchema, this.message)
  }

  /** Whether a node that has the other item would learn nothing from this one. */
  saysTheSame(other: EndpointItem): boolean {
    return this === other || Buffer.compare(this.encode(), other.encode()) === 0
  }
}

const scopesMessage = (bits: number): localv1.EndpointScopes => ({
  $typeName: 'localv1.EndpointScopes',
  internal: (bits & Scope.internal) !== 0,
  external: (bits & Scope.external) !== 0,
  cluster: (bits & Scope.cluster) !== 0,
})

export const serviceItem = (path: string, service: localv1.Service): SetItem =>
  new MessageItem(localv1.Set.SERVICES, path, localv1.ServiceSchema, service)

export const nodeItem = (node: globalv1.Node): SetItem =>
  new MessageItem(localv1.Set.NODES, node.name, globalv1.NodeSchema, node)

export const serviceCidrItem = (cidr: localv1.ServiceCIDR): SetItem =>
  new MessageItem(localv1.Set.SERVICE_CIDRS, cidr.name, localv1.ServiceCIDRSchema, cidr)
