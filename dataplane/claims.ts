import type { Frontend } from './frontend.js'

/**
 * Who owns an address and port that several Services ask for:
 * - A cluster IP belongs to its own Service, on all its ports, even if another Service lists it in externalIPs. Otherwise anybody
 *   who may write a Service could take another one's traffic (CVE-2020-8554).
 * - Among other Services, the first by name owns it, in whatever order they were created. When it is deleted, the next one takes
 *   over.
 */
export class Claims {
  /** By id. */
  readonly #claimants = new Map<string, readonly Frontend[]>()
  /** The Services that have an address as a cluster IP. */
  readonly #clusterIps = new Map<string, readonly string[]>()
  /** The ids of frontends with an address that is not their Service's cluster IP, by address. */
  readonly #otherIds = new Map<string, Set<string>>()

  add(frontend: Frontend): void {
    const { id } = frontend
    const others = this.#claimants.get(id)
    this.#claimants.set(id, others ? [...others, frontend] : [frontend])
    const { kind, address, service } = frontend
    if (kind === 'clusterIP') {
      const owners = this.#clusterIps.get(address)
      if (!owners?.includes(service)) this.#clusterIps.set(address, owners ? [...owners, service] : [service])
    } else if (kind !== 'nodePort') put(this.#otherIds, address, id)
  }

  /** All frontends of a Service must be removed together, so that its cluster IPs are consistent. */
  remove(frontend: Frontend): void {
    const { id } = frontend
    const others = this.claimants(id).filter((other) => other !== frontend)
    if (others.length === 0) this.#claimants.delete(id)
    else this.#claimants.set(id, others)
    const { kind, address, service } = frontend
    if (kind === 'clusterIP') {
      const owners = this.#ownersOf(address, service)
      if (owners.length === 0) this.#clusterIps.delete(address)
      else this.#clusterIps.set(address, owners)
    } else if (!others.some((other) => other.kind !== 'clusterIP')) take(this.#otherIds, address, id)
  }

  claimants(id: string): readonly Frontend[] {
    return this.#claimants.get(id) ?? none
  }

  owner(id: string): Frontend | undefined {
    let best: Frontend | undefined
    for (const frontend of this.claimants(id)) {
      if (this.#isAnothersClusterIp(frontend)) continue
      if (best === undefined || rank(frontend) < rank(best)) best = frontend
    }
    return best
  }

  /** Every id that has an owner. */
  *owners(): Generator<Frontend> {
    for (const id of this.#claimants.keys()) {
      const owner = this.owner(id)
      if (owner) yield owner
    }
  }

  /** The ids whose owner may change when a cluster IP is added or removed. */
  idsOn(address: string): Iterable<string> {
    return this.#otherIds.get(address) ?? none
  }

  /** The other Services that have an address as a cluster IP. */
  #ownersOf(address: string, except: string): readonly string[] {
    return this.#clusterIps.get(address)?.filter((service) => service !== except) ?? none
  }

  #isAnothersClusterIp({ kind, address, service }: Frontend): boolean {
    const owners = kind === 'clusterIP' || kind === 'nodePort' ? undefined : this.#clusterIps.get(address)
    return owners !== undefined && !owners.includes(service)
  }
}

const none: readonly never[] = []

/** The frontend with the smaller text is the owner. */
const rank = ({ kind, service }: Frontend): string => `${kind === 'clusterIP' ? 0 : 1}${service}`

function put(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key)
  if (set) set.add(value)
  else sets.set(key, new Set([value]))
}

function take(sets: Map<string, Set<string>>, key: string, value: string): void {
  const set = sets.get(key)
  set?.delete(value)
  if (set?.size === 0) sets.delete(key)
}
