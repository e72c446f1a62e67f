import type { LiveSample, LiveSync } from '@kpng/api'
import { residentBytes } from '../resident-memory.js'

/** Five minutes. */
const kept = 300

/** A point per second for the charts of the live page. They are always taken, so that a page that is opened shows the last minutes. */
export class Samples {
  readonly #connections: (() => number) | undefined
  readonly #samples: LiveSample[] = []
  #syncs = 0
  #changes = 0
  #latencyMs: number | undefined
  #cpu = process.cpuUsage()

  /** @param connections counts the connections that the data plane carries itself, if it does */
  constructor(connections?: () => number) {
    this.#connections = connections
  }

  /** The oldest first. */
  get list(): readonly LiveSample[] {
    return this.#samples
  }

  onSync({ durationMs, latencyMs, services, moreServices, times }: LiveSync): void {
    const sinceReceived = durationMs - Math.min(0, times?.received ?? times?.stored ?? times?.arrived ?? 0)
    this.#syncs++
    this.#changes += services.length + moreServices
    this.#latencyMs = Math.max(this.#latencyMs ?? 0, latencyMs ?? sinceReceived)
  }

  /** To be called once per second. */
  take(nowMs = Date.now()): LiveSample {
    const cpu = process.cpuUsage()
    const latencyMs = this.#latencyMs
    const sample: LiveSample = {
      at: Math.floor(nowMs / 1000),
      syncs: this.#syncs,
      changes: this.#changes,
      ...(latencyMs === undefined ? {} : { latencyMs: Math.round(latencyMs * 10) / 10 }),
      ...(this.#connections ? { connections: this.#connections() } : {}),
      cpuMs: Math.round((cpu.user + cpu.system - this.#cpu.user - this.#cpu.system) / 1000),
      memory: residentBytes() ?? this.#samples.at(-1)?.memory ?? 0,
    }
    this.#cpu = cpu
    this.#syncs = 0
    this.#changes = 0
    this.#latencyMs = undefined
    this.#samples.push(sample)
    if (this.#samples.length > kept) this.#samples.shift()
    return sample
  }
}
