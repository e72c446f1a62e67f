import type { Server } from '../addresses.js'
import type { KubernetesObject } from '../cases/case.js'
import { clusterObjects, exposed, served, tcpPort } from '../cases/objects.js'
import type { Random } from './random.js'

const servers: readonly Server[] = ['a1', 'a2', 'b1', 'b2']

/** A Service of the run. It always has an endpoint, so no request to it may fail. */
export interface ChaosService {
  readonly name: string
  readonly number: number
  /** The endpoints, and when those that left did so, in visible time. */
  readonly current: ReadonlySet<Server>
  readonly leftAt: ReadonlyMap<Server, number>
}

interface Changing extends ChaosService {
  current: Set<Server>
  readonly leftAt: Map<Server, number>
}

/** Time in which the proxy can see changes: it stands while the proxy or its API server is away, and while the proxy gets no processor. */
export class VisibleTime {
  readonly #clock: () => number
  #before = 0
  #since: number | undefined

  /** @param cpuWait how long the proxy got no processor, in milliseconds */
  constructor(cpuWait: { readonly ms: number } = { ms: 0 }) {
    this.#clock = () => performance.now() - cpuWait.ms
    this.#since = this.#clock()
  }

  now(): number {
    return this.#before + (this.#since === undefined ? 0 : this.#clock() - this.#since)
  }

  pause(): void {
    this.#before = this.now()
    this.#since = undefined
  }

  resume(): void {
    this.#since ??= this.#clock()
  }
}

/** The first one never changes; its connections stay open for the whole run. */
const serviceCount = 5
const firstBurstNumber = 400

/** The Services of a run and what they were a moment ago. */
export class ChaosCluster {
  readonly time: VisibleTime
  readonly services: readonly ChaosService[]
  readonly #changing: readonly Changing[]
  readonly #random: Random
  #burst: readonly KubernetesObject[] = []

  constructor(random: Random, time = new VisibleTime()) {
    this.#random = random
    this.time = time
    const all = Array.from({ length: serviceCount }, (_, index): Changing => {
      const current = new Set<Server>(index === 0 ? ['a1', 'b1'] : random.some(servers))
      return { name: `chaos-${index}`, number: 1 + index, current, leftAt: new Map() }
    })
    this.services = all
    this.#changing = all.slice(1)
  }

  /** Gives one Service other endpoints. */
  change(): void {
    const service = this.#random.pick(this.#changing)
    const next = new Set(this.#random.some(servers))
    for (const server of service.current) if (!next.has(server)) service.leftAt.set(server, this.time.now())
    service.current = next
  }

  /** Adds this number of Services, or gives those that were added before other endpoints. None of them: 0. */
  burst(count: number): void {
    this.#burst = Array.from({ length: count }, (_, index) =>
      served(`burst-${index}`, firstBurstNumber + index, this.#random.some(servers), { ports: [tcpPort(80)] }),
    ).flat()
  }

  objects(): KubernetesObject[] {
    const own = this.services.flatMap(({ name, number, current }) => exposed(name, number, [...current]))
    return [...clusterObjects, ...own, ...this.#burst]
  }
}

/** Whether a request that was made at a time may have reached a server that had left the Service no longer than `graceMs` before. */
export function mayReach({ current, leftAt }: ChaosService, server: string, askedAt: number, graceMs: number): boolean {
  if (current.has(server as Server)) return true
  const left = leftAt.get(server as Server)
  return left !== undefined && left >= askedAt - graceMs
}
