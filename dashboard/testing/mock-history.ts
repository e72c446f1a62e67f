import type { ConnectionsAnswer, LiveSample, LiveSync } from '@kpng/api'
import { keyOf, type MockCluster, type MockEndpoint, type MockService, select } from './mock-cluster.js'

// What happens in the cluster that does not exist: endpoints that come, go and become ready, and the syncs of it.

const keptSyncs = 300
const keptSamples = 300
/** Services that never change by themselves, so that tests and screenshots find them as they are. */
const quiet = new Set(['payments/api'])

/** To two digits, as an agent would send it. */
const rounded = (ms: number) => Math.round(ms * 100) / 100

export class MockHistory {
  readonly syncs: LiveSync[] = []
  readonly samples: LiveSample[] = []
  readonly #cluster: MockCluster
  readonly #all: readonly MockService[]
  #fresh: LiveSync[] = []
  #later: { at: number; run: () => void }[] = []
  #touched = new Set<string>()
  #changes = 0
  #slowestMs: number | undefined
  #number = 0

  constructor(cluster: MockCluster) {
    this.#cluster = cluster
    this.#all = [...cluster.services.values()]
    if (this.#all.length > 0) this.#makePast()
  }

  /** Lets some changes happen. Returns the keys of the Services that they concern. */
  advance(count: number): Iterable<string> {
    for (let left = count; left > 0; left--) if (left >= 1 || this.#cluster.random() < left) this.#happen()
    const now = Date.now()
    const due = this.#later.filter(({ at }) => at <= now)
    this.#later = this.#later.filter(({ at }) => at > now)
    for (const { run } of due) run()
    const touched = this.#touched
    this.#touched = new Set()
    return touched
  }

  takeFresh(): readonly LiveSync[] {
    const fresh = this.#fresh
    this.#fresh = []
    return fresh
  }

  /** The sample of the last second. */
  sample(): LiveSample {
    const sample: LiveSample = {
      ...{ at: Math.round(Date.now() / 1000), syncs: this.#changes, changes: this.#changes },
      ...(this.#slowestMs === undefined ? {} : { latencyMs: this.#slowestMs }),
      cpuMs: rounded(6 + this.#changes * 0.9 + this.#cluster.random() * 4),
      memory: 164e6 + Math.round(this.#cluster.random() * 2e6),
    }
    this.#changes = 0
    this.#slowestMs = undefined
    this.samples.push(sample)
    if (this.samples.length > keptSamples) this.samples.shift()
    return sample
  }

  note(service: MockService, sentence: string, error?: string, at = Date.now()): void {
    const { random } = this.#cluster
    const slow = random() < 0.006 ? 4 + random() * 12 : 0
    const [source, store, view, queue] = [
      0.25 + random() * 0.5,
      0.12 + random() * 0.2,
      0.4 + random() * 0.7 + slow,
      0.05 + random() * 0.1,
    ]
    const durationMs = rounded(0.3 + random() * 0.5 + (error === undefined ? 0 : 12))
    const received = -(source + store + view + queue)
    const trigger = received - 3 - random() * 4
    const isFull = sentence.includes('everything')
    const sync: LiveSync = {
      ...{ number: ++this.#number, at: new Date(at).toISOString(), durationMs, full: isFull, moreServices: 0 },
      latencyMs: rounded(durationMs - trigger),
      services: [{ service: keyOf(service), before: service.endpoints.length, after: service.endpoints.length }],
      ...(error === undefined ? {} : { error }),
      sentence,
      times: {
        trigger: rounded(trigger),
        received: rounded(received),
        stored: rounded(received + source),
        viewed: rounded(received + source + store),
        arrived: rounded(-queue),
        steps: [
          { name: 'compare', from: 0, to: rounded(durationMs * 0.4) },
          { name: 'commit', from: rounded(durationMs * 0.4), to: durationMs },
        ],
      },
    }
    service.changedBy = sync.number
    service.changedAt = sync.at
    this.syncs.push(sync)
    if (this.syncs.length > keptSyncs) this.syncs.shift()
    this.#fresh.push(sync)
    this.#touched.add(keyOf(service))
    this.#changes++
    if (error === undefined) this.#slowestMs = Math.max(this.#slowestMs ?? 0, sync.latencyMs ?? 0)
  }

  #happen(): void {
    const { random } = this.#cluster
    const service = this.#cluster.pick(this.#all)
    const endpoint = service && this.#cluster.pick(service.endpoints)
    if (!service || quiet.has(keyOf(service)) || service.differs) return
    const kind = random()
    const ip = endpoint?.ips[0] ?? ''
    if (kind < 0.45 && endpoint?.ready) {
      this.#readiness(service, endpoint, false)
      this.#after(1500 + random() * 6000, () => this.#readiness(service, endpoint, true))
    } else if (kind < 0.8 && endpoint?.ready) {
      Object.assign(endpoint, { ready: false, terminating: true })
      this.note(service, `${ip} of ${keyOf(service)} is terminating`)
      this.#after(2500 + random() * 4000, () => {
        service.endpoints = service.endpoints.map((each) =>
          each === endpoint ? this.#cluster.newEndpoint(service) : each,
        )
        this.note(service, `${keyOf(service)}: 1 endpoint more, 1 fewer`)
      })
    } else if (kind < 0.985) {
      const added = this.#cluster.newEndpoint(service)
      service.endpoints = [...service.endpoints, added]
      this.note(service, `${added.ips[0]} of ${keyOf(service)} is used now`)
      this.#after(8000, () => {
        service.endpoints = service.endpoints.filter((each) => each !== added)
        this.note(service, `${added.ips[0]} of ${keyOf(service)} is gone`)
      })
    } else {
      this.note(
        service,
        `${keyOf(service)} was changed`,
        'The kernel refused the transaction: EBUSY (device or resource busy).',
      )
      this.#after(300, () => this.note(service, 'everything was compared'))
    }
  }

  #readiness(service: MockService, endpoint: MockEndpoint, isReady: boolean): void {
    if (endpoint.terminating || !service.endpoints.includes(endpoint)) return
    Object.assign(endpoint, { ready: isReady, serving: isReady })
    this.note(service, `${endpoint.ips[0]} of ${keyOf(service)} is ${isReady ? 'ready' : 'not ready'}`)
  }

  #after(ms: number, run: () => void): void {
    this.#later.push({ at: Date.now() + ms, run })
  }

  /** Five minutes that were, so that charts and lists are not empty. */
  #makePast(): void {
    const { random } = this.#cluster
    const now = Date.now()
    const some = Array.from({ length: 160 }, () => this.#cluster.pick(this.#all)).filter((service) => !service.differs)
    some.forEach((service, index) => {
      const ip = service.endpoints[0]?.ips[0] ?? '10.244.0.1'
      const what = this.#cluster.pick(['is ready', 'is not ready', 'is used now', 'is gone'])
      const error = index === 120 ? 'The kernel refused the transaction: EBUSY (device or resource busy).' : undefined
      this.note(service, `${ip} of ${keyOf(service)} ${what}`, error, now - (some.length - index) * 1800)
    })
    const example = this.#cluster.services.get('payments/api')
    const past = ['is gone', 'is used now', 'is ready', 'is not ready', 'is terminating']
    past.forEach((what, index) => {
      if (example)
        this.note(
          example,
          `10.244.8.${index + 11} of payments/api ${what}`,
          undefined,
          now - (past.length - index) * 310,
        )
    })
    const differing = this.#all[Math.floor(this.#all.length * 0.37)]
    if (differing && this.#all.length > 20) differing.differs = true
    for (let second = keptSamples; second > 0; second--) {
      const isBurst = second > 118 && second < 131
      const changes = Math.round(15 + Math.sin(second / 14) * 5 + random() * 9 + (isBurst ? 40 : 0))
      this.samples.push({
        ...{
          at: Math.round(now / 1000) - second,
          syncs: changes,
          changes,
          cpuMs: rounded(8 + changes * 0.9 + random() * 5),
        },
        latencyMs: rounded(6.5 + random() * 2.5 + Math.sin(second / 40) * 0.6 + (isBurst ? 6 + random() * 4 : 0)),
        memory: 163e6 + Math.round(random() * 3e6),
      })
    }
    this.#fresh = []
    this.#touched.clear()
    this.#changes = 0
    this.#slowestMs = undefined
  }
}

/** Open connections of a proxy that carries them itself. */
export function mockConnections(cluster: MockCluster): ConnectionsAnswer {
  const services = [...cluster.services.values()].slice(0, 60)
  const now = Date.now()
  const connections = services.flatMap((service, index) => {
    const used = select(service).filter(({ scopes }) => scopes.length > 0)
    const [port] = service.ports
    return used.slice(0, 2).map(({ endpoint }, each) => {
      const age = ((index * 7919 + each * 104_729) % 900) * 1000
      const size = Math.round(((index * 6151) % 97) ** 3 * (1 + age / 60_000))
      return {
        protocol: port?.protocol === 'udp' ? ('UDP' as const) : ('TCP' as const),
        client: `10.244.${(index * 7) % 120}.${(index * 31 + each) % 250}:${32_768 + ((index * 977 + each * 13) % 28_000)}`,
        frontend: `${service.clusterIps[0]}:${port?.port}`,
        service: keyOf(service),
        endpoint: `${endpoint.ips[0]}:${port?.targetPort}`,
        bytesFromClient: Math.round(size * 0.12),
        bytesToClient: size,
        since: new Date(now - age).toISOString(),
      }
    })
  })
  return { connections, total: connections.length }
}
