import { parseIp } from '@kpng/api'
import type { IpFamily, Service, ServiceCidr } from '../objects/kinds.js'
import type { Change, Store } from '../storage/store.js'
import { type Cidr, contains, numberToAddress, parseCidr } from './cidr.js'

interface NodePortRange {
  readonly first: number
  readonly last: number
}

/**
 * Which cluster IPs and node ports are taken, and which come next. It follows the store, so a write that fails, or a dry
 * run, takes nothing, and a deleted Service gives back by itself.
 */
export class ServiceNetwork {
  readonly #addresses = new Map<string, string>()
  readonly #ports = new Map<number, string>()
  #cidrs: Cidr[] = []
  readonly #nextAddress = new Map<string, bigint>()
  #nextPort: number
  readonly #store: Store

  constructor(
    store: Store,
    readonly nodePorts: NodePortRange,
  ) {
    this.#store = store
    this.#nextPort = nodePorts.first + portBand(nodePorts)
    for (const stored of store.list('services')) this.#take(stored.key, stored.object as Service)
    this.#readCidrs()
    store.subscribe('services', (change) => this.#follow(change))
    store.subscribe('servicecidrs.networking.k8s.io', () => this.#readCidrs())
  }

  #readCidrs(): void {
    this.#cidrs = this.#store
      .list('servicecidrs.networking.k8s.io')
      .map(({ object }) => object as ServiceCidr)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .sort((a, b) => Number(a.metadata.name !== 'kubernetes') - Number(b.metadata.name !== 'kubernetes'))
      .flatMap(({ spec }) => spec.cidrs ?? [])
      .flatMap((text) => parseCidr(text) ?? [])
  }

  #follow(change: Change): void {
    const before = change.before?.object as Service | undefined
    for (const address of before ? addressesOf(before) : []) this.#addresses.delete(address)
    for (const port of before ? nodePortsOf(before) : []) this.#ports.delete(port)
    if (!change.deleted) this.#take(change.key, change.after.object as Service)
  }

  #take(key: string, service: Service): void {
    for (const address of addressesOf(service)) this.#addresses.set(address, key)
    for (const port of nodePortsOf(service)) this.#ports.set(port, key)
  }

  /** The IP families of the cluster, the default one first. */
  get families(): IpFamily[] {
    return [...new Set(this.#cidrs.map(({ family }) => family))]
  }

  /** Why a Service may not have this address; undefined when it may. */
  addressProblem(key: string, address: string): string | undefined {
    if (!this.#cidrs.some((cidr) => contains(cidr, address))) {
      const ranges = this.#cidrs.map(({ text }) => text).join(', ')
      return `failed to allocate IP ${address}: the provided IP (${address}) is not in the valid range. The range of valid IPs is ${ranges}`
    }
    const owner = this.#addresses.get(canonical(address))
    if (owner === undefined || owner === key) return undefined
    return `failed to allocate IP ${address}: provided IP is already allocated`
  }

  /** A free address of a family. Like the API server it leaves the low addresses of a range to people. */
  freeAddress(family: IpFamily): string | undefined {
    for (const cidr of this.#cidrs) {
      if (cidr.family !== family) continue
      const reserved = lowBand(cidr)
      const count = cidr.size - (family === 'IPv4' ? 1n : 0n)
      let next = this.#nextAddress.get(cidr.text) ?? reserved + 1n
      for (let tried = 1n; tried < count; tried++, next++) {
        if (next >= count) next = 1n
        const address = numberToAddress(cidr.first + next, family)
        if (this.#addresses.has(address)) continue
        this.#nextAddress.set(cidr.text, next + 1n)
        return address
      }
    }
    return undefined
  }

  portProblem(key: string, port: number): string | undefined {
    const { first, last } = this.nodePorts
    if (port < first || port > last) {
      return `provided port is not in the valid range. The range of valid ports is ${first}-${last}`
    }
    const owner = this.#ports.get(port)
    return owner === undefined || owner === key ? undefined : 'provided port is already allocated'
  }

  freePort(except: ReadonlySet<number>): number | undefined {
    const { first, last } = this.nodePorts
    for (let tried = first; tried <= last; tried++, this.#nextPort++) {
      if (this.#nextPort > last) this.#nextPort = first
      if (!this.#ports.has(this.#nextPort) && !except.has(this.#nextPort)) return this.#nextPort++
    }
    return undefined
  }

  /** Whether a Service uses an address that only these ranges provide: then they cannot go. */
  usesOnly(cidrs: readonly string[]): boolean {
    const going = cidrs.flatMap((text) => parseCidr(text) ?? [])
    // Those that are going are not among them any more; the same range may stand in another object that stays.
    return [...this.#addresses.keys()].some(
      (address) =>
        going.some((cidr) => contains(cidr, address)) && !this.#cidrs.some((cidr) => contains(cidr, address)),
    )
  }
}

/** How many node ports at the start of the range are given out last: between 16 and 128, a 32nd of the range. */
function portBand({ first, last }: NodePortRange): number {
  const size = last - first + 1
  const band = Math.min(128, Math.max(16, Math.floor(size / 32)))
  return band < size ? band : 0
}

/** How many addresses at the start of a range are given out last: between 16 and 256, a sixteenth of the range. */
function lowBand(cidr: Cidr): bigint {
  const sixteenth = cidr.size / 16n
  const band = sixteenth < 16n ? 16n : sixteenth > 256n ? 256n : sixteenth
  return band < cidr.size / 2n ? band : 1n
}

const canonical = (address: string): string => parseIp(address)?.text ?? address

export const addressesOf = (service: Service): string[] =>
  (service.spec.clusterIPs ?? []).filter((address) => address !== 'None' && address !== '').map(canonical)

const nodePortsOf = (service: Service): number[] =>
  [...(service.spec.ports ?? []).map(({ nodePort }) => nodePort ?? 0), service.spec.healthCheckNodePort ?? 0].filter(
    (port) => port > 0,
  )
