import { type Cidr, hostPort } from '@kpng/api'
import type { FrontendAddress } from '@kpng/client'

/** An endpoint of a frontend. */
export interface FrontendEndpoint {
  /** Canonical text. */
  readonly ip: string
  /** 0 if the frontend has the whole address: the client's port is kept. */
  readonly port: number
  /** On this node. */
  readonly isLocal: boolean
}

/** What clients of one kind get. */
export interface Audience {
  /** In the order of the view, each address and port once. */
  readonly endpoints: readonly FrontendEndpoint[]
  /** What happens to a new connection if there is no endpoint. `drop`: there are endpoints on other nodes, but the policy is Local. */
  readonly otherwise: 'refuse' | 'drop'
}

/**
 * One way into a Service on this node. It is a value: it is never changed in place, and two frontends with equal fields are
 * interchangeable. A Service with two ports, a cluster IP and a node port has four frontends.
 */
export interface Frontend extends FrontendAddress {
  /** Unique among the frontends of a node: see `frontendId`. */
  readonly id: string
  /** `namespace/name` */
  readonly service: string
  /** The name of the Service's port; empty if it has none. */
  readonly portName: string
  /** For pods and for this node itself. For a cluster IP: for everybody. */
  readonly inside: Audience
  /** For everybody else. The same object as `inside` unless externalTrafficPolicy is Local. */
  readonly outside: Audience
  /** Endpoints that get no new connections but still serve existing ones. UDP flows to them stay. */
  readonly draining: readonly FrontendEndpoint[]
  /** Only clients from these ranges may connect. Undefined: everybody. */
  readonly allowedSources: readonly Cidr[] | undefined
  /** How long a client stays with its endpoint after its last connection. Undefined: no session affinity. */
  readonly sessionAffinitySeconds: number | undefined
  /**
   * Whose source address is replaced by the node's. `always`: everybody's. `notPods`: that of clients that are not pods.
   * `node`: only that of this node itself. A pod that reaches itself through its Service is always masqueraded.
   */
  readonly masquerade: 'always' | 'notPods' | 'node'
}

/** The Service has the whole address. */
export const isWholeAddress = ({ protocol }: FrontendAddress): boolean => protocol === 'any'

/** Unique among all frontends of a node: `10.96.0.1:80/tcp`, `[fd00::1]:53/udp`, `10.0.0.55`, `IPv4 node port 30080/tcp`. */
export function frontendId({ kind, family, address, protocol, port }: FrontendAddress): string {
  if (kind === 'nodePort') return `${family} node port ${port}/${protocol}`
  return protocol === 'any' ? address : `${hostPort(address, port)}/${protocol}`
}

/** As kube-proxy names a service port: `namespace/name:port`. Session affinity is remembered per client and service port. */
export const servicePortName = ({ service, portName }: Pick<Frontend, 'service' | 'portName'>): string =>
  portName === '' ? service : `${service}:${portName}`

/** `10.244.1.5:8080`; only the address if the port is the client's. */
export const endpointKey = ({ ip, port }: Pick<FrontendEndpoint, 'ip' | 'port'>): string =>
  port === 0 ? ip : hostPort(ip, port)

/** Whether two frontends are equal. */
export function sameFrontend(a: Frontend, b: Frontend): boolean {
  return (
    a === b ||
    (a.id === b.id &&
      a.service === b.service &&
      a.portName === b.portName &&
      a.kind === b.kind &&
      a.masquerade === b.masquerade &&
      a.sessionAffinitySeconds === b.sessionAffinitySeconds &&
      sameSources(a.allowedSources, b.allowedSources) &&
      sameAudience(a.inside, b.inside) &&
      (a.outside === a.inside) === (b.outside === b.inside) &&
      (a.outside === a.inside || sameAudience(a.outside, b.outside)) &&
      sameEndpoints(a.draining, b.draining))
  )
}

const sameAudience = (a: Audience, b: Audience): boolean =>
  a === b || (a.otherwise === b.otherwise && sameEndpoints(a.endpoints, b.endpoints))

const sameEndpoints = (a: readonly FrontendEndpoint[], b: readonly FrontendEndpoint[]): boolean =>
  a === b ||
  (a.length === b.length &&
    a.every((endpoint, index) => {
      const other = b[index]
      return endpoint.ip === other?.ip && endpoint.port === other.port && endpoint.isLocal === other.isLocal
    }))

const sameSources = (a: readonly Cidr[] | undefined, b: readonly Cidr[] | undefined): boolean =>
  a === b ||
  (a !== undefined && b !== undefined && a.length === b.length && a.every(({ text }, index) => text === b[index]?.text))
