import type { OpenConnection } from '@kpng/client'
import { type Frontend, frontendId } from '@kpng/dataplane'
import type { Scope } from './balancer/balancer.js'

/** Something that is on its way between a client and an endpoint: a TCP connection, a UDP session. */
export interface Flow {
  /** The kind of traffic that it is. */
  readonly scope: Scope
  /** Unix time in milliseconds. */
  readonly sinceMs: number
  /** `10.244.1.5:40112` */
  readonly client: string
  /** Where the client came in. */
  readonly frontend: Frontend
  readonly bytesToEndpoint: number
  readonly bytesToClient: number
  /** Its endpoint serves nobody any more. */
  endpointGone(): void
  /** Its endpoint gets new connections, but no longer of this kind of traffic. */
  endpointForbidden(): void
  /** Its endpoint was gone and is used again. */
  endpointBack(): void
  /** Ends it now. */
  abort(): void
}

/** The flows of one service port, by the endpoint that they go to. */
export class Flows {
  readonly #byEndpoint = new Map<string, Set<Flow>>()
  readonly #undecided = new Set<Flow>()
  readonly #waiting: (() => void)[] = []

  /** A flow that has no endpoint yet. */
  begin(flow: Flow): void {
    this.#undecided.add(flow)
  }

  /** It found one, or it never will. */
  end(flow: Flow): void {
    this.#undecided.delete(flow)
    this.#checkNone()
  }

  add(endpointKey: string, flow: Flow): void {
    const flows = this.#byEndpoint.get(endpointKey)
    if (flows) flows.add(flow)
    else this.#byEndpoint.set(endpointKey, new Set([flow]))
  }

  remove(endpointKey: string, flow: Flow): void {
    const flows = this.#byEndpoint.get(endpointKey)
    flows?.delete(flow)
    if (flows?.size === 0) this.#byEndpoint.delete(endpointKey)
    this.#checkNone()
  }

  endpointsGone(endpointKeys: Iterable<string>): void {
    for (const flow of this.#of(endpointKeys)) flow.endpointGone()
  }

  endpointsForbidden(endpointKeys: Iterable<string>, scope: Scope): void {
    for (const flow of this.#of(endpointKeys)) if (flow.scope === scope) flow.endpointForbidden()
  }

  endpointsBack(endpointKeys: Iterable<string>): void {
    for (const flow of this.#of(endpointKeys)) flow.endpointBack()
  }

  allGone(): void {
    this.endpointsGone([...this.#byEndpoint.keys()])
  }

  abortAll(): void {
    for (const flow of [...this.#undecided]) flow.abort()
    for (const flows of [...this.#byEndpoint.values()]) for (const flow of [...flows]) flow.abort()
  }

  /** Those that have an endpoint, each with its endpoint. */
  *open(): Generator<readonly [endpointKey: string, flow: Flow]> {
    for (const [endpointKey, flows] of this.#byEndpoint) for (const flow of flows) yield [endpointKey, flow]
  }

  /** Waits until none is left. */
  none(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.#checkNone()
    })
  }

  /** A copy: a listener may remove itself when it is called. */
  #of(endpointKeys: Iterable<string>): Flow[] {
    return [...endpointKeys].flatMap((key) => [...(this.#byEndpoint.get(key) ?? [])])
  }

  #checkNone(): void {
    if (this.#waiting.length === 0 || this.#undecided.size > 0 || this.#byEndpoint.size > 0) return
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** The newest flows, the newest first, and how many there are. */
export function openConnections(all: Iterable<Flows>, limit: number): { total: number; connections: OpenConnection[] } {
  const open = [...all].flatMap((flows) => [...flows.open()])
  const newest = open.sort(([, a], [, b]) => b.sinceMs - a.sinceMs).slice(0, limit)
  return { total: open.length, connections: newest.map(describeFlow) }
}

function describeFlow([endpoint, flow]: readonly [string, Flow]): OpenConnection {
  const { client, frontend, bytesToEndpoint, bytesToClient, sinceMs } = flow
  const { kind, port, protocol, service } = frontend
  return {
    protocol: protocol === 'udp' ? 'udp' : 'tcp',
    client,
    frontend: kind === 'nodePort' ? `node port ${port}` : frontendId(frontend).replace(/\/\w+$/, ''),
    ...{ service, endpoint, bytesToEndpoint, bytesToClient, sinceMs },
  }
}
