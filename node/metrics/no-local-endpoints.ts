import { type Family, families } from '@kpng/api'
import type { Changes, NodeView } from '@kpng/client'
import type { Audience, Frontend, FrontendTable, NodeFacts } from '@kpng/dataplane'

type TrafficPolicy = 'internal' | 'external'

export const trafficPolicies: readonly TrafficPolicy[] = ['internal', 'external']

/** Service ports with a Local policy whose traffic is dropped here, by policy and family. */
type NoLocalEndpoints = { readonly [key in `${TrafficPolicy}/${Family}`]: number }

const zero: NoLocalEndpoints = { 'internal/IPv4': 0, 'internal/IPv6': 0, 'external/IPv4': 0, 'external/IPv6': 0 }
const keys = Object.keys(zero) as (keyof NoLocalEndpoints)[]

const isDropped = ({ endpoints, otherwise }: Audience): boolean => endpoints.length === 0 && otherwise === 'drop'

/** @param frontends of one Service */
function noLocalEndpointsOf(frontends: readonly Frontend[]): NoLocalEndpoints {
  const counts = { ...zero }
  for (const family of families) {
    for (const policy of trafficPolicies) {
      const dropped = frontends.filter(
        ({ family: own, kind, outside }) =>
          own === family && (kind === 'clusterIP') === (policy === 'internal') && isDropped(outside),
      )
      counts[`${policy}/${family}`] = new Set(dropped.map(({ portName }) => portName)).size
    }
  }
  return keys.some((key) => counts[key] > 0) ? counts : zero
}

/** Keeps the totals up to date at the cost of what changed: the services that count are remembered, the others are not. */
export class NoLocalEndpointsTotal {
  readonly #frontends: FrontendTable
  readonly #byService = new Map<string, NoLocalEndpoints>()
  #total: NoLocalEndpoints = zero
  #node: NodeFacts | undefined

  constructor(frontends: FrontendTable) {
    this.#frontends = frontends
  }

  get total(): NoLocalEndpoints {
    return this.#total
  }

  /** To be called after each sync that succeeded, with the table up to date. */
  observe(view: NodeView, changes: Changes): void {
    const everything = changes.full || this.#frontends.node !== this.#node
    this.#node = this.#frontends.node
    const paths = everything ? new Set([...this.#byService.keys(), ...view.services.keys()]) : changes.services.keys()
    for (const path of paths) this.#set(path, noLocalEndpointsOf(this.#frontends.wantedBy(path)))
  }

  #set(path: string, after: NoLocalEndpoints): void {
    const before = this.#byService.get(path) ?? zero
    if (before === zero && after === zero) return
    const total = { ...this.#total }
    for (const key of keys) total[key] += after[key] - before[key]
    this.#total = total
    if (after === zero) this.#byService.delete(path)
    else this.#byService.set(path, after)
  }
}
