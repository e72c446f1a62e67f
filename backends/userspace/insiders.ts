import { networkInterfaces } from 'node:os'
import type { globalv1 } from '@kpng/api'
import { type Family, parseIp, parseRanges, type Ranges } from './address.js'
import { isLoopback } from './refused-address.js'

/**
 * Who is inside the cluster: this node and the pods. Their traffic to addresses meant for the outside ignores
 * externalTrafficPolicy, as in kube-proxy.
 */
export class Insiders {
  readonly #extraCidrs: readonly string[]
  #ownIps = new Set<string>()
  #ranges: Ranges
  #nodeAddresses: readonly string[] = []

  constructor(extraCidrs: readonly string[]) {
    this.#extraCidrs = extraCidrs
    this.#ranges = parseRanges(extraCidrs)
    this.refresh()
  }

  /** Takes what the source knows of the node. Where it knows nothing, only the machine's own addresses are inside. */
  setNode(node: globalv1.Node | undefined): void {
    this.#nodeAddresses = node?.addresses ?? []
    this.#ranges = parseRanges([...this.#extraCidrs, ...(node?.podCidrs ?? [])])
    this.refresh()
  }

  /** Reads the machine's addresses again: interfaces come and go. */
  refresh(): void {
    const own = [...this.#nodeAddresses, ...machineAddresses().map(({ address }) => address)]
    this.#ownIps = new Set(own.flatMap((text) => parseIp(text)?.ip ?? []))
  }

  isOwn(ip: string, family: Family): boolean {
    return this.#ownIps.has(ip) || isLoopback(ip, family)
  }

  isInside(ip: string, family: Family): boolean {
    return this.isOwn(ip, family) || this.#ranges.has(ip, family)
  }

  /** Whether any of this node's own addresses is in the ranges. */
  anyOwnIn(ranges: Ranges, family: Family): boolean {
    for (const ip of this.#ownIps) if (familyOf(ip) === family && ranges.has(ip, family)) return true
    return false
  }

  /** The ranges that are inside, without the node's own addresses. */
  get cidrs(): readonly string[] {
    return this.#ranges.cidrs
  }

  /** An address of this node that its own programs can reach a proxy port at. */
  primaryIp(family: Family): string | undefined {
    const onMachine = machineAddresses().filter(({ internal }) => !internal)
    const usable = new Set(onMachine.flatMap(({ address }) => parseIp(address)?.ip ?? []))
    const [named] = this.#nodeAddresses
      .flatMap((text) => parseIp(text) ?? [])
      .filter((address) => address.family === family && usable.has(address.ip))
    return named?.ip ?? [...usable].find((ip) => familyOf(ip) === family && !ip.startsWith('fe80:'))
  }
}

const familyOf = (ip: string): Family => (ip.includes(':') ? 'v6' : 'v4')

const machineAddresses = () => Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
