// The path rules of the wire contract.

/** `namespace/name`: a service in a node's view. */
export const servicePath = (namespace: string, name: string): string => `${namespace}/${name}`

/** `namespace/name/key`: an endpoint in a node's view. */
export const endpointPath = (service: string, key: string): string => `${service}/${key}`

/** The Service of an endpoint's path, or undefined if it is not the path of an endpoint. */
export function serviceOfEndpointPath(path: string): string | undefined {
  const first = path.indexOf('/')
  const second = first < 0 ? -1 : path.indexOf('/', first + 1)
  return second < 0 ? undefined : path.slice(0, second)
}

/** The four parts of a path in the global stream. Parts that do not apply are empty. */
export interface GlobalPath {
  /** Empty for a node. */
  readonly namespace: string
  /** The name of the node, or of the service. */
  readonly name: string
  /** The EndpointSlice; empty unless it is an endpoint. */
  readonly source: string
  /** The hash of the endpoint; empty unless it is one. */
  readonly key: string
}

/** `namespace|name|source|key` */
export const globalPath = ({ namespace = '', name = '', source = '', key = '' }: Partial<GlobalPath>): string =>
  `${namespace}|${name}|${source}|${key}`

/** The parts of a global path, or undefined if it does not have four. */
export function parseGlobalPath(path: string): GlobalPath | undefined {
  const parts = path.split('|')
  if (parts.length !== 4) return undefined
  const [namespace, name, source, key] = parts as [string, string, string, string]
  return { namespace, name, source, key }
}
