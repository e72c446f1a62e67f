import { setTimeout as sleep } from 'node:timers/promises'
import type { Family } from '@kpng/api'
import type { Outcome, Place } from '@kpng/linux/testing'
import { clusterIp, type Host, loadBalancerIp, nodeA, nodePort } from '../addresses.js'
import type { Lab } from '../lab/lab.js'
import type { Pace } from '../runner/pace.js'
import { requestTimeoutMs } from '../runner/request-loop.js'
import { type ChaosCluster, type ChaosService, mayReach } from './cluster.js'

/** A pod that left a Service gets no new connection after this time, on a machine that is not busy. */
const graceMs = 1000
const pauseMs = 30
/** Silence counts only if a proxy that carries the data itself got a processor for most of the time. */
const longestCpuWaitMs = requestTimeoutMs / 2
/** The slowest moment of so long decides how long things may take. */
const paceKeptMs = 5000

export interface TrafficOptions {
  readonly lab: Lab
  readonly pace: Pace
  readonly cluster: ChaosCluster
  readonly families: readonly Family[]
  readonly cpuWait: { readonly ms: number }
}

interface Way {
  readonly client: Host
  readonly service: ChaosService
  readonly to: Place
  /** Of an open connection. */
  readonly flow?: string
}

/** Clients that ask all the time, and check each answer. */
export class Traffic {
  asked = 0
  /** What must not have happened, as sentences. */
  readonly violations: string[] = []
  readonly #lab: Lab
  readonly #pace: Pace
  readonly #cluster: ChaosCluster
  readonly #cpuWait: { readonly ms: number }
  readonly #loops: Promise<void>[]
  #graces: readonly { readonly at: number; readonly ms: number }[] = []
  #isOver = false
  /** Why failures do not count at the moment. Each excuse has a number, so that requests that saw it in part are known. */
  #excuse: string | undefined
  #excuses = 0

  constructor({ lab, pace, cluster, families, cpuWait }: TrafficOptions) {
    this.#cpuWait = cpuWait
    this.#lab = lab
    this.#pace = pace
    this.#cluster = cluster
    const ways = cluster.services.flatMap((service, index) => waysTo(service, families, index === 0))
    this.#loops = [...ways.map((way) => this.#loop(way)), this.#watchPace(families)]
    for (const loop of this.#loops) loop.catch(() => {})
  }

  /** From now on failures do not count, and where connections go neither. */
  excuse(why: string): void {
    this.#excuse = why
    this.#excuses++
  }

  endExcuse(): void {
    if (this.#excuse !== undefined) this.#excuses++
    this.#excuse = undefined
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
  }

  async #loop(way: Way): Promise<void> {
    while (!this.#isOver) {
      const excuses = this.#excuses
      const isExcused = this.#excuse !== undefined
      const [askedAt, waitedMs] = [this.#cluster.time.now(), this.#cpuWait.ms]
      const outcome = await this.#ask(way)
      this.asked++
      const isStarved = outcome.outcome === 'dropped' && this.#cpuWait.ms - waitedMs > longestCpuWaitMs
      if (!isExcused && !isStarved && excuses === this.#excuses) this.#check(way, outcome, askedAt)
      await sleep(pauseMs)
    }
  }

  /** On a busy machine everything takes longer, and so may this. */
  async #watchPace(families: readonly Family[]): Promise<void> {
    while (!this.#isOver) {
      for (const family of families) await this.#pace.measure('pod-a', family)
      const now = performance.now()
      this.#graces = [
        ...this.#graces.filter(({ at }) => now - at < paceKeptMs),
        { at: now, ms: this.#pace.scaled(graceMs) },
      ]
      await sleep(pauseMs)
    }
  }

  get #graceMs(): number {
    return Math.max(graceMs, ...this.#graces.map(({ ms }) => ms))
  }

  #ask({ client, to, flow }: Way): Promise<Outcome> {
    return this.#lab.agents[client].call('probe', {
      to,
      timeoutMs: requestTimeoutMs,
      // After an excuse, connections are new.
      ...(flow !== undefined && { flow: `${flow} ${this.#excuses}` }),
    })
  }

  #check({ client, service, to, flow }: Way, outcome: Outcome, askedAt: number): void {
    const what = `${client} to ${service.name} (${to.ip} port ${to.port} ${to.protocol})`
    if (outcome.outcome !== 'reached') {
      const how = outcome.outcome === 'broken' ? `broken (${outcome.how})` : outcome.outcome
      this.violations.push(`${flow === undefined ? 'A request' : 'An open connection'} from ${what} was ${how}.`)
    } else if (flow === undefined && !mayReach(service, outcome.server, askedAt, this.#graceMs)) {
      const left = service.leftAt.get(outcome.server as never)
      const when = left === undefined ? 'was never an endpoint' : `had left ${Math.round(askedAt - left)} ms before`
      this.violations.push(`A request from ${what} reached ${outcome.server}, which ${when}.`)
    }
  }
}

function waysTo(service: ChaosService, families: readonly Family[], hasOpenConnection: boolean): Way[] {
  const { number, name } = service
  return families.flatMap((family) => {
    const inside: Place = { protocol: 'TCP', ip: clusterIp(number)[family], port: 80 }
    return [
      { client: 'pod-a', service, to: inside },
      { client: 'pod-a', service, to: { ...inside, protocol: 'UDP' } },
      { client: 'outside', service, to: { protocol: 'TCP', ip: nodeA[family], port: nodePort(number) } },
      { client: 'outside', service, to: { protocol: 'TCP', ip: loadBalancerIp(number)[family], port: 80 } },
      ...(hasOpenConnection ? [{ client: 'pod-a', service, to: inside, flow: `${name} ${family}` } as const] : []),
    ] satisfies Way[]
  })
}
