import type { EndpointAddress } from './rotation.js'

export interface RememberedClient {
  readonly client: string
  /** Its key. */
  readonly endpoint: string
}

interface Session {
  readonly endpoint: EndpointAddress
  lastUsedMs: number
}

/** More clients than this are not remembered: the one unused for longest makes room. A client with a /64 could fill any memory. */
const maxSessions = 100_000

/** Which endpoint each client has (`sessionAffinity: ClientIP`). Every use makes the session last its full time again. */
export class Affinity {
  /** The client unused for longest comes first. */
  readonly #sessions = new Map<string, Session>()
  readonly #now: () => number
  /** Undefined: no affinity. */
  timeoutMs: number | undefined

  constructor(now: () => number) {
    this.#now = now
  }

  sessions(): RememberedClient[] {
    this.cleanUp()
    return [...this.#sessions].map(([client, { endpoint }]) => ({ client, endpoint: endpoint.key }))
  }

  recall(clientIp: string): EndpointAddress | undefined {
    const session = this.#sessions.get(clientIp)
    if (!session || this.timeoutMs === undefined) return undefined
    return this.#now() - session.lastUsedMs < this.timeoutMs ? session.endpoint : undefined
  }

  remember(clientIp: string, endpoint: EndpointAddress): void {
    if (this.timeoutMs === undefined) return
    this.#sessions.delete(clientIp)
    this.#sessions.set(clientIp, { endpoint, lastUsedMs: this.#now() })
    if (this.#sessions.size <= maxSessions) return
    const [oldest] = this.#sessions.keys()
    if (oldest !== undefined) this.#sessions.delete(oldest)
  }

  /** Forgets the sessions of endpoints that are gone. */
  forget(endpointKeys: ReadonlySet<string>): void {
    for (const [client, { endpoint }] of this.#sessions)
      if (endpointKeys.has(endpoint.key)) this.#sessions.delete(client)
  }

  /** Forgets a client's session if it is with this endpoint. */
  leave(clientIp: string, endpointKey: string): void {
    if (this.#sessions.get(clientIp)?.endpoint.key === endpointKey) this.#sessions.delete(clientIp)
  }

  /** Forgets the sessions whose time is over. */
  cleanUp(): void {
    const { timeoutMs } = this
    if (timeoutMs === undefined) this.#sessions.clear()
    else this.#forgetUnusedFor(timeoutMs)
  }

  #forgetUnusedFor(timeoutMs: number): void {
    for (const [client, { lastUsedMs }] of this.#sessions) {
      if (this.#now() - lastUsedMs < timeoutMs) return
      this.#sessions.delete(client)
    }
  }
}
