import { messageOf } from '@kpng/api'
import { type Balancer, contentOf, keyOf } from './balancers.js'
import {
  balancerFlags,
  type EndpointSettings,
  type Hcn,
  type HcnEndpoint,
  HcnError,
  type HcnLoadBalancer,
  type HcnNetwork,
  isRemote,
  type LoadBalancerSettings,
} from './hcn.js'
import { ipOf, remoteMac, sameMac } from './remote-endpoints.js'

/** What HNS should hold. */
export interface Desired {
  readonly balancers: readonly Balancer[]
  /** Endpoints that must exist beside those of the balancers, such as that of the source VIP. */
  readonly endpoints: readonly EndpointSettings[]
  /** The settings of an endpoint that is not on this node. */
  remoteEndpoint(ip: string): EndpointSettings
  /** The MAC address of endpoints for cluster IPs on overlay networks. */
  readonly hostMac?: string
  /** The ID of the node's root endpoint, if it has one. */
  readonly rootEndpoint?: string
}

export interface Outcome {
  /** What failed, by the name of the object. The next call tries again. */
  readonly failures: ReadonlyMap<string, string>
  /** Addresses of local pods that have no endpoint in HNS yet. The network plug-in makes them. */
  readonly missingPods: ReadonlySet<string>
  /** The Services whose load balancers were written. */
  readonly written: ReadonlySet<string>
}

/**
 * Makes HNS hold what is desired. HNS itself is the state: load balancers are recognised by what clients see of them, not by IDs that were
 * remembered, so a restart adopts those that are right, and one that others deleted is made again. It may fail at any call. The next call
 * continues from whatever HNS holds then.
 */
export class Reconciler {
  readonly #hcn: Hcn
  readonly #canModify: boolean
  /** What was read once is not read again while its ID is listed. */
  readonly #endpoints = new Map<string, HcnEndpoint>()
  readonly #balancers = new Map<string, HcnLoadBalancer>()

  constructor(hcn: Hcn, { canModify }: { readonly canModify: boolean }) {
    this.#hcn = hcn
    this.#canModify = canModify
  }

  /** The next call reads everything again. */
  forget(): void {
    this.#endpoints.clear()
    this.#balancers.clear()
  }

  /** Throws if HNS is not running or cannot list its objects. Everything else is an outcome. */
  async reconcile(network: HcnNetwork, desired: Desired): Promise<Outcome> {
    const run = new Run({
      ...{ hcn: this.#hcn, network, desired, canModify: this.#canModify },
      ...{ endpoints: this.#endpoints, balancers: this.#balancers },
    })
    await run.read()
    await run.createEndpoints()
    await run.deleteUnwantedBalancers()
    await run.applyBalancers()
    await run.deleteEndpoints()
    return run
  }

  /** What HNS holds for a key, read again, with its endpoints by IP. Undefined: nothing. */
  async held(
    key: string,
  ): Promise<{ readonly balancer: HcnLoadBalancer; readonly ips: readonly string[] } | undefined> {
    const known = [...this.#balancers.values()].find((each) => keyOf(each) === key)
    const balancer = known && (await this.#hcn.loadBalancer(known.ID))
    if (!balancer) return undefined
    const ips: string[] = []
    for (const id of balancer.HostComputeEndpoints ?? []) {
      const endpoint = this.#endpoints.get(id) ?? (await this.#hcn.endpoint(id))
      const isIpv6 = ((balancer.Flags ?? 0) & balancerFlags.ipv6) !== 0
      const own = endpoint?.IpConfigurations?.find(({ IpAddress = '' }) => IpAddress.includes(':') === isIpv6)
      ips.push(own?.IpAddress ?? `endpoint ${id}`)
    }
    return { balancer, ips }
  }

  /** Deletes all load balancers, and those endpoints of the network that this backend or kube-proxy made. */
  async removeAll(network: HcnNetwork, isOwn: (endpoint: HcnEndpoint) => boolean): Promise<Outcome> {
    const outcome = await this.reconcile(network, { balancers: [], endpoints: [], remoteEndpoint: () => ({}) })
    for (const [id, endpoint] of this.#endpoints) if (isOwn(endpoint)) await this.#hcn.deleteEndpoint(id)
    return outcome
  }
}

interface RunParts {
  readonly hcn: Hcn
  readonly network: HcnNetwork
  readonly desired: Desired
  /** By ID. */
  readonly endpoints: Map<string, HcnEndpoint>
  /** By ID. */
  readonly balancers: Map<string, HcnLoadBalancer>
  readonly canModify: boolean
}

/** One reconciliation, step by step. */
class Run implements Outcome {
  readonly failures = new Map<string, string>()
  readonly missingPods = new Set<string>()
  readonly written = new Set<string>()
  /** Load balancers that were found and are wanted, by key. */
  readonly #kept = new Map<string, HcnLoadBalancer>()
  readonly #parts: RunParts
  readonly #desired = new Map<string, Balancer>()
  readonly #neededIps = new Set<string>()
  #endpointsByIp = new Map<string, HcnEndpoint>()
  #unreadEndpoints = false
  #unreadBalancers = false

  constructor(parts: RunParts) {
    this.#parts = parts
  }

  /** Nothing is changed before everything is known. One enumeration finds what others deleted, without reading the rest again. */
  async read(): Promise<void> {
    const { hcn, network, endpoints, balancers } = this.#parts
    const endpointIds = await hcn.endpointIds(network.ID)
    this.#unreadEndpoints = await this.#refresh('endpoint', endpoints, endpointIds, (id) => hcn.endpoint(id))
    const balancerIds = await hcn.loadBalancerIds()
    this.#unreadBalancers = await this.#refresh('load balancer', balancers, balancerIds, (id) => hcn.loadBalancer(id))
    this.#indexEndpoints()
  }

  async createEndpoints(): Promise<void> {
    for (const settings of this.#parts.desired.endpoints) await this.#need(ipOf(settings), () => settings)
    for (const { endpoints } of this.#parts.desired.balancers) {
      if (endpoints === 'root') continue
      for (const { ip, isLocal } of endpoints) {
        if (!isLocal) await this.#need(ip, () => this.#parts.desired.remoteEndpoint(ip))
        else if (!this.#idOf(ip, true)) this.missingPods.add(ip)
      }
    }
  }

  /** First of all, because they hold ports. One without port mappings was left by a creation that failed. */
  async deleteUnwantedBalancers(): Promise<void> {
    for (const balancer of this.#parts.desired.balancers) {
      // A health check gives way to a Service with the same address and port.
      const known = this.#desired.get(balancer.key)
      const hasWay = !known || (known.endpoints === 'root' && balancer.endpoints !== 'root')
      if (hasWay && this.#hasEndpoints(balancer)) this.#desired.set(balancer.key, balancer)
    }
    for (const [id, balancer] of [...this.#parts.balancers]) {
      const key = keyOf(balancer)
      if (key !== undefined && this.#desired.has(key) && !this.#kept.has(key)) this.#kept.set(key, balancer)
      else await this.#attempt(key ?? `load balancer ${id}`, () => this.#deleteBalancer(id))
    }
  }

  async applyBalancers(): Promise<void> {
    for (const [key, balancer] of this.#desired) {
      const held = this.#kept.get(key)
      const ids = this.#idsOf(balancer)
      // A pod that could not be read is not a pod that is gone.
      if (held && this.#unreadEndpoints && ids.length < balancer.endpoints.length) continue
      const settings = { HostComputeEndpoints: ids, ...balancer.settings }
      if (held && contentOf(held) === contentOf(settings)) continue
      await this.#attempt(balancer.name, async () => {
        await this.#write(settings, held?.ID)
        this.written.add(balancer.service)
      })
    }
  }

  /** Last of all: no load balancer may point to an endpoint that is gone. Endpoints that others made stay. */
  async deleteEndpoints(): Promise<void> {
    if (this.#unreadBalancers) return
    const used = new Set<string>()
    for (const { HostComputeEndpoints = [] } of this.#parts.balancers.values())
      for (const id of HostComputeEndpoints) used.add(id.toLowerCase())
    for (const [id, endpoint] of [...this.#parts.endpoints]) {
      const ip = ipOf(endpoint)
      if (ip === undefined || !isRemote(endpoint) || used.has(id.toLowerCase()) || !this.#isOwn(endpoint, ip)) continue
      if (this.#neededIps.has(ip) && this.#endpointsByIp.get(ip) === endpoint) continue
      await this.#attempt(`endpoint ${ip}`, async () => {
        await this.#parts.hcn.deleteEndpoint(id)
        this.#parts.endpoints.delete(id)
      })
    }
  }

  /** Returns whether something could not be read. */
  async #refresh<T>(
    what: string,
    known: Map<string, T>,
    ids: readonly string[],
    read: (id: string) => Promise<T | undefined>,
  ): Promise<boolean> {
    const listed = new Set(ids)
    for (const id of known.keys()) if (!listed.has(id)) known.delete(id)
    const failuresBefore = this.failures.size
    for (const id of listed) {
      if (known.has(id)) continue
      await this.#attempt(`${what} ${id}`, async () => {
        const found = await read(id)
        if (found) known.set(id, found)
      })
    }
    return this.failures.size > failuresBefore
  }

  /** A pod's own endpoint counts more than a remote one with the same IP, which an earlier pod on another node may have left. */
  #indexEndpoints(): void {
    for (const endpoint of this.#parts.endpoints.values()) {
      for (const { IpAddress } of endpoint.IpConfigurations ?? []) {
        if (IpAddress === undefined) continue
        const known = this.#endpointsByIp.get(IpAddress)
        if (!known || isRemote(known)) this.#endpointsByIp.set(IpAddress, endpoint)
      }
    }
  }

  async #need(ip: string | undefined, settings: () => EndpointSettings): Promise<void> {
    if (ip === undefined || this.#neededIps.has(ip)) return
    this.#neededIps.add(ip)
    if (this.#endpointsByIp.has(ip)) return
    await this.#attempt(`endpoint ${ip}`, async () => {
      const created = await this.#parts.hcn.createEndpoint(this.#parts.network.ID, settings())
      this.#parts.endpoints.set(created.ID, created)
      this.#endpointsByIp.set(ip, created)
    })
  }

  #idOf(ip: string, isLocal: boolean): string | undefined {
    const endpoint = this.#endpointsByIp.get(ip)
    return endpoint && !(isLocal && isRemote(endpoint)) ? endpoint.ID : undefined
  }

  #idsOf({ endpoints }: Balancer): string[] {
    if (endpoints === 'root')
      return this.#parts.desired.rootEndpoint === undefined ? [] : [this.#parts.desired.rootEndpoint]
    return [...new Set(endpoints.flatMap(({ ip, isLocal }) => this.#idOf(ip, isLocal) ?? []))].sort()
  }

  /** HNS refuses a load balancer without endpoints. While endpoints cannot be read, what is there stays. */
  #hasEndpoints(balancer: Balancer): boolean {
    return this.#idsOf(balancer).length > 0 || (this.#unreadEndpoints && balancer.endpoints.length > 0)
  }

  async #write(settings: LoadBalancerSettings, id: string | undefined): Promise<void> {
    if (settings.HostComputeEndpoints.length === 0) return
    if (id !== undefined && this.#parts.canModify && (await this.#modify(id, settings))) return
    if (id !== undefined) await this.#deleteBalancer(id)
    const created = await this.#parts.hcn.createLoadBalancer(settings)
    this.#parts.balancers.set(created.ID, created)
  }

  /** HNS 15.4 may answer that it has changed a load balancer, and not have changed it. */
  async #modify(id: string, settings: LoadBalancerSettings): Promise<boolean> {
    try {
      const modified = await this.#parts.hcn.modifyLoadBalancer(id, settings)
      this.#parts.balancers.set(id, modified)
      return contentOf(modified) === contentOf(settings)
    } catch (error) {
      if (HcnError.is(error, 'notImplemented') || HcnError.is(error, 'notFound')) return false
      // It may have been changed or not. The next run reads it again, and until then its endpoints are not known.
      this.#parts.balancers.delete(id)
      this.#unreadBalancers = true
      throw error
    }
  }

  /** It is forgotten only after the deletion has succeeded, so a failed one is tried again. */
  async #deleteBalancer(id: string): Promise<void> {
    await this.#parts.hcn.deleteLoadBalancer(id)
    this.#parts.balancers.delete(id)
  }

  /** HNS has no owners. The MAC addresses of remote endpoints tell those of this backend and of kube-proxy. */
  #isOwn({ MacAddress }: HcnEndpoint, ip: string): boolean {
    const { hostMac } = this.#parts.desired
    return sameMac(MacAddress, remoteMac(ip)) || (hostMac !== undefined && sameMac(MacAddress, hostMac))
  }

  /** One object that fails does not stop the others. If HNS is not running, all would fail. */
  async #attempt(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (HcnError.is(error, 'notRunning')) throw error
      this.failures.set(name, messageOf(error))
    }
  }
}
