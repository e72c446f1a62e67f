import type { ServicePortTraffic } from '@kpng/client'
import type { ServicePortCounters } from '../counters.js'

// Counters in memory that threads share: each thread writes its own, and the main thread reads all of them at any time, without asking.

const names = [
  'connections',
  'active',
  'bytesToEndpoint',
  'bytesToClient',
  'dialFailures',
  'failures',
  'crowdedOut',
  'refused',
] as const satisfies readonly (keyof ServicePortTraffic)[]

/** The memory for one service port: a part for each thread. */
export function sharedCounters(threads: number): Float64Array[] {
  const memory = new SharedArrayBuffer(threads * names.length * Float64Array.BYTES_PER_ELEMENT)
  const part = names.length * Float64Array.BYTES_PER_ELEMENT
  return Array.from({ length: threads }, (_, thread) => new Float64Array(memory, thread * part, names.length))
}

/** What all threads have counted, as of each read. */
export function sumOf(parts: readonly Float64Array[]): ServicePortTraffic {
  const sum = {}
  for (const [index, name] of names.entries()) {
    const get = () => parts.reduce((total, part) => total + (part[index] as number), 0)
    Object.defineProperty(sum, name, { get, enumerable: true })
  }
  return sum as ServicePortTraffic
}

/** The counters of one thread. */
export class PartCounters {
  readonly part: Float64Array

  constructor(part: Float64Array) {
    this.part = part
  }
}
for (const [index, name] of names.entries()) {
  Object.defineProperty(PartCounters.prototype, name, {
    get(this: PartCounters) {
      return this.part[index]
    },
    set(this: PartCounters, value: number) {
      this.part[index] = value
    },
  })
}

/** Counters that are kept in a part of shared memory. */
export const countersIn = (part: Float64Array): ServicePortCounters =>
  new PartCounters(part) as unknown as ServicePortCounters
