import type { globalv1 } from '@kpng/api'
import { type InterfaceAddress, interfaceAddresses } from '@kpng/linux'
import { type Family, parseIp, parseRanges, type Ranges } from './address.js'
import { isLoopback } from './refused-address.js'

/** One address of this node a family. Undefined: it has none that other machines could know. */
export type NodeIps = Readonly<Record<Family, string | undefined>>

/**
 * Who is inside the cluster: this node and the pods. Their traffic to addresses meant for the outside ignores
 * externalTrafficPolicy, as in kube-proxy.
 */
export class Insiders {
  readonly #extraCidrs: readonly string[]
  #ownIps = new Set<string>()
  #ranges: Ranges
  #nodeAddresses: readonly string[] = []
  #nodeIps: NodeIps = { v4: undefined, v6: undefined }

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
    const onMachine = interfaceAddresses()
    const own = [...this.#nodeAddresses, ...onMachine.map(({ ip }) => ip)]
    this.#ownIps = new Set(own.flatMap((text) => parseIp(text)?.ip ?? []))
    this.#nodeIps = { v4: this.#chooseIp('v4', onMachine), v6: this.#chooseIp('v6', onMachine) }
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

  /** Addresses of this node at which proxy ports can be reached, from here and from elsewhere. As of the last refresh. */
  get nodeIps(): NodeIps {
    return this.#nodeIps
  }

  /** One that the source names; else the one chosen before, since whoever listens there would have to move; else the first there is. */
  #chooseIp(family: Family, onMachine: readonly InterfaceAddress[]): string | undefined {
    // Link-local addresses cannot be sent to without naming an interface.
    const usable = onMachine.filter(
      ({ ip, isLinkLocal }) => familyOf(ip) === family && !isLoopback(ip, family) && !isLinkLocal,
    )
    const has = (ip: string | undefined) => usable.some((address) => address.ip === ip)
    const named = this.#nodeAddresses.flatMap((text) => parseIp(text)?.ip ?? [])
    // What somebody put on the loopback interface may be a service's address: only a named one is taken from there.
    return [...named, this.#nodeIps[family]].find(has) ?? usable.find(({ isInternal }) => !isInternal)?.ip
  }
}

const familyOf = (ip: string): Family => (ip.includes(':') ? 'v6' : 'v4')
