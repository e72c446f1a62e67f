import { CidrSet, parseCidr } from '@kpng/api'
import { type Hcn, type HcnEndpoint, type HcnLoadBalancer, isRemote } from '../hcn.js'
import { ipOf } from '../remote-endpoints.js'

// HNS has no owners. What these commands make is recognised by its addresses and names, so it needs no file, and `clean` finds it in a
// later run. Load balancers and endpoints of others are neither seen nor touched.

/** For benchmarks between networks (RFC 2544, RFC 5180): no Service and no pod has an address of these. */
export const testRanges = ['198.18.0.0/15', '2001:2::/48'] as const

const podPrefix = 'kpng-conformance-pod-'
/** The name of a pod that these commands make. */
export const podName = (at: number): string => `${podPrefix}${at}`

export class Own {
  readonly #ranges: CidrSet
  /** What was recognised once, by ID. */
  readonly #known = new Map<string, boolean>()

  constructor(ranges: readonly string[] = testRanges) {
    this.#ranges = new CidrSet(ranges.flatMap((text) => parseCidr(text) ?? []))
  }

  isOwnEndpoint(endpoint: HcnEndpoint): boolean {
    if (endpoint.Name?.startsWith(podPrefix)) return true
    return isRemote(endpoint) && this.#ranges.has(ipOf(endpoint) ?? '')
  }

  /** One with a VIP has it in the ranges. That of a node port has none, but only endpoints that are own. */
  async isOwnBalancer(hcn: Hcn, { FrontendVIPs = [], HostComputeEndpoints = [] }: HcnLoadBalancer): Promise<boolean> {
    const [vip] = FrontendVIPs
    if (vip) return this.#ranges.has(vip)
    for (const id of HostComputeEndpoints) {
      const endpoint = await hcn.endpoint(id)
      if (!endpoint || !this.isOwnEndpoint(endpoint)) return false
    }
    return HostComputeEndpoints.length > 0
  }

  async endpoints(hcn: Hcn, networkId: string): Promise<HcnEndpoint[]> {
    return (await readAll(await hcn.endpointIds(networkId), (id) => hcn.endpoint(id))).filter((each) =>
      this.isOwnEndpoint(each),
    )
  }

  async balancers(hcn: Hcn): Promise<HcnLoadBalancer[]> {
    const found: HcnLoadBalancer[] = []
    for (const balancer of await readAll(await hcn.loadBalancerIds(), (id) => hcn.loadBalancer(id)))
      if (await this.isOwnBalancer(hcn, balancer)) found.push(balancer)
    return found
  }

  /** HNS as a backend may see it: it deletes load balancers and remote endpoints that it does not want, so it sees only own ones. */
  part(hcn: Hcn): Hcn {
    const visible = async (ids: readonly string[], isVisible: (id: string) => Promise<boolean>) => {
      const seen: string[] = []
      for (const id of ids) {
        if (!this.#known.has(id)) this.#known.set(id, await isVisible(id))
        if (this.#known.get(id)) seen.push(id)
      }
      return seen
    }
    const changed: Partial<Hcn> = {
      endpointIds: async (networkId) =>
        visible(await hcn.endpointIds(networkId), async (id) => {
          const endpoint = await hcn.endpoint(id)
          return endpoint !== undefined && (!isRemote(endpoint) || this.isOwnEndpoint(endpoint))
        }),
      loadBalancerIds: async () =>
        visible(await hcn.loadBalancerIds(), async (id) => {
          const balancer = await hcn.loadBalancer(id)
          return balancer !== undefined && (await this.isOwnBalancer(hcn, balancer))
        }),
    }
    return withCalls(hcn, changed)
  }
}

/** An HNS with some other calls. */
export const withCalls = (hcn: Hcn, changed: Partial<Hcn>): Hcn =>
  new Proxy(hcn, {
    get: (target, name) => {
      const value = changed[name as keyof Hcn] ?? Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

/** Others delete too: what is gone meanwhile is left out. */
export async function readAll<T>(ids: readonly string[], read: (id: string) => Promise<T | undefined>): Promise<T[]> {
  const found: T[] = []
  for (const id of ids) {
    const one = await read(id)
    if (one !== undefined) found.push(one)
  }
  return found
}
