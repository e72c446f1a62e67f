import { KpngError } from '@kpng/api'
import { numberToAddress, parseCidr } from '../services/cidr.js'

/** Gives each pod an address of its own, and takes it back. Addresses go round, so that one is not reused at once. */
export class PodAddresses {
  readonly #used = new Map<string, string>()
  #next = 1n
  readonly #cidr: string
  readonly #ipv6: readonly string[]

  constructor(cidr: string, ipv6: readonly string[]) {
    this.#cidr = cidr
    this.#ipv6 = ipv6
  }

  /** The pod's addresses: those it had, or free ones. */
  take(pod: string, had: readonly string[]): string[] {
    const known = had.filter((address) => (this.#used.get(address) ?? pod) === pod)
    const addresses = known.length > 0 ? known : [this.#freeIpv4(), ...this.#freeIpv6()]
    for (const address of addresses) this.#used.set(address, pod)
    return addresses
  }

  #freeIpv4(): string {
    const range = parseCidr(this.#cidr)
    for (let tried = 2n; range && tried < range.size; tried++) {
      this.#next = this.#next + 1n >= range.size - 1n ? 1n : this.#next + 1n
      const address = numberToAddress(range.first + this.#next, 'IPv4')
      if (!this.#used.has(address)) return address
    }
    throw new KpngError(
      'unavailable',
      `Every address of the pod range ${this.#cidr} is taken; delete pods, or start with a larger range.`,
    )
  }

  #freeIpv6(): string[] {
    const address = this.#ipv6.find((item) => !this.#used.has(item))
    return address === undefined ? [] : [address]
  }

  /** Other addresses for a pod whose own turned out to be in use outside; undefined when there are none. */
  move(pod: string): string[] | undefined {
    for (const [address, owner] of this.#used) if (owner === pod) this.#used.set(address, 'another process')
    try {
      return this.take(pod, [])
    } catch {
      return undefined
    }
  }

  release(pod: string): void {
    for (const [address, owner] of this.#used) if (owner === pod) this.#used.delete(address)
  }
}
