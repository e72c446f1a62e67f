import { randomUUID } from 'node:crypto'
import { isIP, isIPv6 } from 'node:net'
import { keyOf } from '../balancers.js'
import {
  balancerFlags,
  type EndpointSettings,
  featuresOf,
  type Hcn,
  type HcnEndpoint,
  HcnError,
  type HcnLoadBalancer,
  type HcnNetwork,
  type HnsVersion,
  isOverlay,
  isRemote,
  type LoadBalancerSettings,
} from '../hcn.js'

/** How a call of HNS fails. */
export interface Fault {
  /** The method, or `*`. */
  readonly call: string
  readonly code: number
  /** How often. Default: for ever. */
  times?: number
  /** After this number of calls that succeed. Default 0. */
  after?: number
}

/** HNS in memory. It refuses what the stub of computenetwork.dll (stub.c) refuses, with the same codes. */
export class FakeHcn implements Hcn {
  readonly networksById = new Map<string, HcnNetwork>()
  readonly endpoints = new Map<string, HcnEndpoint & { readonly HostComputeNetwork: string }>()
  readonly balancers = new Map<string, HcnLoadBalancer>()
  /** The IDs of endpoints that are interfaces of the machine. */
  readonly attached: string[] = []
  /** The methods that were called. */
  calls: string[] = []
  faults: Fault[] = []
  hnsVersion: HnsVersion = { Major: 15, Minor: 4 }
  /** A creation that fails leaves a load balancer without port mappings. */
  leavesHalf = false
  /** Modify answers that it succeeded, and changes nothing. */
  ignoresModify = false
  /** Modify changes the load balancer, and answers with an error. */
  failsAfterModify = false
  /** Ports on which a process listens at all addresses. Windows Server 2019 refuses load balancers for them. */
  readonly listeningPorts = new Set<number>()
  /** Two endpoints may have one IP. */
  allowsDuplicateIps = false
  /** This number of creations fail after a load balancer of the same frontend was deleted, because its port stays reserved. */
  portsHeldAfterDelete = 0
  readonly #heldPorts = new Map<string, number>()

  /** The calls that changed something, since the last time. */
  writes(): string[] {
    const writes = this.calls.filter((call) => /create|modify|delete/.test(call))
    this.calls = []
    return writes
  }

  /** References to endpoints that do not exist. */
  get dangling(): string[] {
    return [...this.balancers.values()]
      .flatMap(({ HostComputeEndpoints = [] }) => HostComputeEndpoints)
      .filter((id) => !this.endpoints.has(id))
  }

  async version(): Promise<HnsVersion> {
    this.#enter('version')
    return this.hnsVersion
  }

  async networks(): Promise<readonly HcnNetwork[]> {
    this.#enter('networks')
    return [...this.networksById.values()]
  }

  async networkNamed(name: string): Promise<HcnNetwork | undefined> {
    this.#enter('networkNamed')
    return [...this.networksById.values()].find(({ Name }) => Name === name)
  }

  async createNetwork(settings: object): Promise<HcnNetwork> {
    this.#enter('createNetwork')
    const network = { ...settings, ID: randomUUID() }
    this.networksById.set(network.ID, network)
    return network
  }

  async deleteNetwork(id: string): Promise<void> {
    this.#enter('deleteNetwork')
    this.networksById.delete(id)
  }

  async endpointIds(networkId: string): Promise<readonly string[]> {
    this.#enter('endpointIds')
    return [...this.endpoints.values()].filter((each) => each.HostComputeNetwork === networkId).map(({ ID }) => ID)
  }

  async endpoint(id: string): Promise<HcnEndpoint | undefined> {
    this.#enter('endpoint')
    return this.endpoints.get(id)
  }

  async endpointNamed(name: string): Promise<HcnEndpoint | undefined> {
    this.#enter('endpointNamed')
    return [...this.endpoints.values()].find(({ Name }) => Name === name)
  }

  async createEndpoint(networkId: string, settings: EndpointSettings): Promise<HcnEndpoint> {
    this.#enter('createEndpoint')
    const network = this.networksById.get(networkId)
    if (!network) throw new HcnError('HcnOpenNetwork', 0x80070490)
    const refuse = (code: number) => new HcnError('HcnCreateEndpoint', code)
    const chosen = isRemote(settings) ? [] : this.#freeAddresses(network)
    const { IpConfigurations = chosen } = settings
    const ips = IpConfigurations.map(({ IpAddress = '' }) => IpAddress)
    const isMac = /^[\da-f]{2}([:-][\da-f]{2}){5}$/i.test(settings.MacAddress ?? '')
    if (isRemote(settings) && (ips.length === 0 || !isMac)) throw refuse(0x803b000c)
    const taken = [...this.endpoints.values()].flatMap(({ IpConfigurations = [] }) => IpConfigurations)
    for (const ip of ips) {
      const isTaken = !this.allowsDuplicateIps && taken.some(({ IpAddress }) => IpAddress === ip)
      if (isIP(ip) === 0 || isTaken) throw refuse(0x803b002f)
    }
    if (isRemote(settings) && isOverlay(network) && !settings.Policies?.length) throw refuse(0x803b000d)
    const endpoint = { ...settings, IpConfigurations, HostComputeNetwork: networkId, ID: randomUUID() }
    this.endpoints.set(endpoint.ID, endpoint)
    return endpoint
  }

  async attachToHost(endpointId: string): Promise<void> {
    this.#enter('attachToHost')
    if (!this.endpoints.has(endpointId)) throw new HcnError('HNSCall', 0x80004005)
    this.attached.push(endpointId)
  }

  async deleteEndpoint(id: string): Promise<void> {
    this.#enter('deleteEndpoint')
    this.endpoints.delete(id)
  }

  async loadBalancerIds(): Promise<readonly string[]> {
    this.#enter('loadBalancerIds')
    return [...this.balancers.keys()]
  }

  async loadBalancer(id: string): Promise<HcnLoadBalancer | undefined> {
    this.#enter('loadBalancer')
    return this.balancers.get(id)
  }

  async createLoadBalancer(settings: LoadBalancerSettings): Promise<HcnLoadBalancer> {
    try {
      this.#enter('createLoadBalancer')
    } catch (error) {
      const half = { ID: randomUUID() }
      if (this.leavesHalf) this.balancers.set(half.ID, half)
      throw error
    }
    this.#check('HcnCreateLoadBalancer', settings)
    const key = keyOf(settings) as string
    const held = this.#heldPorts.get(key) ?? 0
    this.#heldPorts.set(key, held - 1)
    if (held > 0) throw new HcnError('HcnCreateLoadBalancer', 0x803b0013)
    const balancer = { ...settings, ID: randomUUID() }
    this.balancers.set(balancer.ID, balancer)
    return balancer
  }

  async modifyLoadBalancer(id: string, settings: LoadBalancerSettings): Promise<HcnLoadBalancer> {
    this.#enter('modifyLoadBalancer')
    if (!featuresOf(this.hnsVersion).modifyLoadBalancer) throw new HcnError('HcnModifyLoadBalancer', 0x80004001)
    if (!this.balancers.has(id)) throw new HcnError('HcnOpenLoadBalancer', 0x80070490)
    this.#check('HcnModifyLoadBalancer', settings, id)
    if (!this.ignoresModify) this.balancers.set(id, { ...settings, ID: id })
    if (this.failsAfterModify) throw new HcnError('HcnQueryLoadBalancerProperties', 0x80004005)
    return this.balancers.get(id) as HcnLoadBalancer
  }

  async deleteLoadBalancer(id: string): Promise<void> {
    this.#enter('deleteLoadBalancer')
    const key = keyOf(this.balancers.get(id) ?? {})
    if (key !== undefined) this.#heldPorts.set(key, this.portsHeldAfterDelete)
    this.balancers.delete(id)
  }

  /** HNS chooses the addresses of an endpoint without any: one of each subnet. */
  #freeAddresses({ Ipams = [] }: HcnNetwork): { readonly IpAddress: string }[] {
    const used = [...this.endpoints.values()].flatMap(({ IpConfigurations = [] }) => IpConfigurations)
    return Ipams.flatMap(({ Subnets = [] }) => Subnets).map(({ IpAddressPrefix = '' }) => {
      const start = (IpAddressPrefix.split('/')[0] as string).replace(/\.\d+$/, '.')
      let last = 10
      while (used.some(({ IpAddress }) => IpAddress === `${start}${last}`)) last++
      return { IpAddress: `${start}${last}` }
    })
  }

  #enter(call: string): void {
    this.calls.push(call)
    for (const fault of this.faults) {
      if (fault.call !== '*' && fault.call !== call) continue
      if (fault.after !== undefined && fault.after > 0) {
        fault.after--
        continue
      }
      if (fault.times === 0) continue
      if (fault.times !== undefined) fault.times--
      throw new HcnError(call, fault.code, 'injected')
    }
  }

  #check(call: string, settings: LoadBalancerSettings, own?: string): void {
    const refuse = (code: number) => new HcnError(call, code)
    const { HostComputeEndpoints, SourceVIP, FrontendVIPs = [], PortMappings, Flags } = settings
    if (HostComputeEndpoints.length === 0) throw refuse(0x803b001c)
    if (!HostComputeEndpoints.every((id) => this.endpoints.has(id))) throw refuse(0x803b0002)
    if (PortMappings.length === 0 || (SourceVIP !== undefined && isIP(SourceVIP) === 0)) throw refuse(0x803b000d)
    const isIpv6Balancer = (Flags & balancerFlags.ipv6) !== 0
    if (FrontendVIPs.some((ip) => isIPv6(ip) !== isIpv6Balancer)) throw refuse(0x803b000d)
    if (!PortMappings.every((each) => each.InternalPort > 0 && each.ExternalPort > 0)) throw refuse(0x803b000d)
    if (PortMappings.some((each) => this.listeningPorts.has(each.ExternalPort))) throw refuse(0x803b0013)
    const key = keyOf(settings)
    for (const [id, other] of this.balancers) if (id !== own && keyOf(other) === key) throw refuse(0x803b0013)
  }
}
