import { type Family, hostPort } from '@kpng/api'
import type { Protocol } from '@kpng/client'
import { type Audience, endpointKey, type Frontend, type FrontendEndpoint, isWholeAddress } from '@kpng/dataplane'
import { type Marks, markMasquerade } from './names.js'

/** What IPVS finds a virtual server by. */
export interface ServerAddress {
  readonly family: Family
  /** With a mark, only what kpng uses the server for: IPVS finds it by the mark alone. */
  readonly protocol: Protocol
  readonly address: string
  readonly port: number
  /** 0: by address, protocol and port. */
  readonly mark: number
}

/** Where a virtual server sends connections to. */
export type Destination = Pick<FrontendEndpoint, 'ip' | 'port'>

/** A virtual server as it should be. */
export interface VirtualServer extends ServerAddress {
  /** See `serverKey`. */
  readonly key: string
  readonly scheduler: string
  /** How long a client stays with its destination. 0: not at all. */
  readonly persistenceSeconds: number
  /** Those that get new connections, by `endpointKey`. */
  readonly destinations: ReadonlyMap<string, Destination>
  /** Those that may keep the clients that they have, by `endpointKey`. */
  readonly mayKeepClients: ReadonlySet<string>
}

/** `10.96.0.1:80/tcp`, `IPv4 mark 0x4b000001` */
export const serverKey = ({ family, protocol, address, port, mark }: ServerAddress): string =>
  mark === 0 ? `${hostPort(address, port)}/${protocol}` : `${family} mark 0x${mark.toString(16)}`

/** Where a frontend is reached: the address of a Service, or an address of the node for a node port. */
export interface Entrance {
  readonly address: string
  readonly protocol: Protocol
  readonly port: number
}

/** One for each address. A Service that has a whole address has one for each protocol, with port 0. */
export function entrancesOf(frontend: Frontend, nodePortAddresses: readonly string[]): Entrance[] {
  const { kind, address, protocol, port } = frontend
  if (protocol === 'any') return wholeAddressProtocols.map((each) => ({ address, protocol: each, port: 0 }))
  const addresses = kind === 'nodePort' ? nodePortAddresses : [address]
  return addresses.map((each) => ({ address: each, protocol, port }))
}

/** IPVS knows no others. */
const wholeAddressProtocols: readonly Protocol[] = ['tcp', 'udp', 'sctp']

/** Which marks lead to the virtual servers of a frontend. Undefined: none is needed. */
export interface FrontendMarks {
  readonly inside?: number
  readonly outside?: number
}

/** Whether clients inside and outside of the cluster get different endpoints. */
export const isSplit = ({ inside, outside }: Frontend): boolean =>
  inside !== outside && endpointsText(inside) !== endpointsText(outside)

/** The names that a frontend's marks have in `Marks`. */
export const markNames = (frontend: Frontend, protocol: Protocol): Readonly<Record<'inside' | 'outside', string>> => {
  const name = isWholeAddress(frontend) ? `${frontend.id}/${protocol}` : frontend.id
  return { inside: `${name} inside`, outside: `${name} ${isSplit(frontend) ? 'outside' : 'inside'}` }
}

/**
 * The address finds what clients outside get. If clients inside get other endpoints, a mark leads them to a virtual server of their
 * own. A whole address is always found by marks, since a virtual server without a port cannot draw endpoints per connection.
 */
export function marksOf(frontend: Frontend, protocol: Protocol, marks: Marks): FrontendMarks {
  const { inside, outside, masquerade } = frontend
  const names = markNames(frontend, protocol)
  if (!isWholeAddress(frontend)) {
    return isSplit(frontend) && inside.endpoints.length > 0 ? { inside: marks.of(names.inside) } : {}
  }
  const flagged = (mark: number, isMasqueraded: boolean) => (isMasqueraded ? (mark | markMasquerade) >>> 0 : mark)
  return {
    ...(inside.endpoints.length > 0 ? { inside: flagged(marks.of(names.inside), masquerade === 'always') } : {}),
    ...(outside.endpoints.length > 0 ? { outside: flagged(marks.of(names.outside), masquerade !== 'node') } : {}),
  }
}

export interface ServerSettings {
  readonly scheduler: string
  /** The scheduler that gives a client the same endpoint each time. */
  readonly hashScheduler: string
  readonly nodePortAddresses: readonly string[]
  readonly marks: Marks
}

/** The virtual servers of a frontend. */
export function virtualServers(frontend: Frontend, settings: ServerSettings): VirtualServer[] {
  const { family, inside, outside } = frontend
  const entrances = entrancesOf(frontend, settings.nodePortAddresses)
  const found = new Map<string, VirtualServer>()
  const put = (server: Omit<VirtualServer, 'key'>) => {
    const key = serverKey(server)
    found.set(key, { ...server, key })
  }
  for (const { address, protocol, port } of entrances) {
    const marks = marksOf(frontend, protocol, settings.marks)
    const where = { family, protocol, address, port, mark: 0 }
    if (!isWholeAddress(frontend)) put({ ...where, ...served(frontend, outside, settings, 'address') })
    const marked = isWholeAddress(frontend) ? 'whole' : 'split'
    if (marks.inside) put({ ...byMark(where, marks.inside), ...served(frontend, inside, settings, marked) })
    if (marks.outside) put({ ...byMark(where, marks.outside), ...served(frontend, outside, settings, marked) })
  }
  return [...found.values()]
}

/** Two addresses of a node port share their mark. */
const byMark = ({ family, protocol }: ServerAddress, mark: number): ServerAddress => ({
  ...{ family, protocol, mark },
  ...{ address: '', port: 0 },
})

/**
 * A persistent virtual server with a mark keeps the port that the client asked for. Where the port changes, source hashing gives a
 * client the same endpoint as long as the endpoints stay the same.
 */
function served(
  { sessionAffinitySeconds, inside, outside, draining }: Frontend,
  { endpoints }: Audience,
  { scheduler, hashScheduler }: ServerSettings,
  found: 'address' | 'split' | 'whole',
): Pick<VirtualServer, 'scheduler' | 'persistenceSeconds' | 'destinations' | 'mayKeepClients'> {
  const hasAffinity = sessionAffinitySeconds !== undefined
  const isHashed = hasAffinity && found === 'split'
  return {
    scheduler: isHashed ? hashScheduler : scheduler,
    persistenceSeconds: hasAffinity && !isHashed ? sessionAffinitySeconds : 0,
    destinations: new Map(endpoints.map(({ ip, port }) => [endpointKey({ ip, port }), { ip, port }])),
    // As in kube-proxy, a UDP flow stays while its endpoint serves, even if new clients no longer get it.
    mayKeepClients: new Set([...inside.endpoints, ...outside.endpoints, ...draining].map(endpointKey)),
  }
}

const endpointsText = ({ endpoints }: Audience): string => endpoints.map(endpointKey).join()
