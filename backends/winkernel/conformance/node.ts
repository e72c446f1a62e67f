import { familyOf, KpngError, parseIp } from '@kpng/api'
import { FakeCore, type TestService } from '@kpng/client/testing'
import type { FrontendBackend } from '@kpng/dataplane'
import { winkernelBackend } from '../backend.js'
import { featuresOf, type Hcn, type HcnEndpoint, type HcnNetwork, type HnsFeatures, isOverlay } from '../hcn.js'
import { type Settings, settingsOf, type WinkernelOptions } from '../options.js'
import { Own, podName, testRanges } from './own.js'

/** What a person gives on the command line. */
export interface ConformanceOptions
  extends Pick<WinkernelOptions, 'networkName' | 'sourceVip' | 'enableDsr' | 'log'>,
    // For tests.
    Pick<WinkernelOptions, 'openHcn' | 'hostMacOf' | 'ownAddresses' | 'allowLoopback'> {
  /** The address of this node. Default: the first IPv4 address of the machine that others can reach. */
  readonly nodeIp?: string
  /** Two free addresses of the network, for the pods that are made. Default: HNS chooses. */
  readonly podIps?: readonly string[]
  /** For traffic: pods on this node that run `agnhost netexec`. Default: small servers in this process. */
  readonly pods?: readonly string[]
  /** How long a load balancer may take to pass traffic, in milliseconds. Default 20,000. */
  readonly settleMs?: number
  /** For tests: the ranges of the addresses of Services, IPv4 and IPv6. Default: those for benchmarks. */
  readonly ranges?: readonly [string, string]
  /** For tests: wine cannot serve one UDP port at two addresses. Default true. */
  readonly testUdp?: boolean
}

/** A pod on this node, as HNS has it. */
export interface TestPod {
  readonly name: string
  readonly endpoint: HcnEndpoint
  readonly ip: string
  readonly ipV6: string | undefined
}

/** The node that is tested: HNS, the network, and what these commands made on it. */
export class TestedNode {
  /** All of HNS. */
  readonly hcn: Hcn
  /** HNS as the backend sees it here: without the load balancers and remote endpoints of others. */
  readonly part: Hcn
  readonly own: Own
  readonly network: HcnNetwork
  readonly features: HnsFeatures
  readonly options: ConformanceOptions

  private constructor(options: ConformanceOptions, hcn: Hcn, network: HcnNetwork, features: HnsFeatures) {
    this.options = options
    this.hcn = hcn
    this.network = network
    this.features = features
    this.own = new Own(options.ranges)
    this.part = this.own.part(hcn)
  }

  static async open(options: ConformanceOptions): Promise<TestedNode> {
    const { networkName, openHcn } = settingsOf(options)
    const hcn = await openHcn()
    const network = networkName === '' ? undefined : await hcn.networkNamed(networkName)
    if (!network) {
      const why = networkName === '' ? 'No HNS network was named.' : `There is no HNS network ${networkName}.`
      throw new KpngError('usage', `${why} Give one with --network-name: ${await networkNames(hcn)}.`)
    }
    return new TestedNode(options, hcn, network, featuresOf(await hcn.version()))
  }

  get isOverlay(): boolean {
    return isOverlay(this.network)
  }

  /** The address of this node. */
  get nodeIp(): string {
    const { nodeIp } = this.options
    const found =
      nodeIp ??
      this.settings()
        .ownAddresses()
        .find((ip) => familyOf(ip) === 'IPv4')
    if (found !== undefined && parseIp(found)) return found
    throw new KpngError('usage', `The address of this node is ${found ?? 'not known'}. Give it with --node-ip.`)
  }

  /** An address of the range for Services. @param group 0 to 255 @param at 0 to 255 */
  address(group: number, at: number): string {
    const [range] = this.options.ranges ?? testRanges
    return `${range.split('.').slice(0, 2).join('.')}.${group}.${at}`
  }

  addressV6(at: number): string {
    const [, range] = this.options.ranges ?? testRanges
    return `${range.split('/')[0]}${at.toString(16)}`
  }

  settings(more: WinkernelOptions = {}): Settings {
    return settingsOf(this.#backendOptions(more))
  }

  #backendOptions(more: WinkernelOptions): WinkernelOptions {
    return { ...this.options, openHcn: async () => this.part, checkIntervalMs: 0, ...more }
  }

  /** The backend, and a core that feeds it. */
  start(services: readonly TestService[], more: WinkernelOptions = {}): { backend: FrontendBackend; core: FakeCore } {
    const backend = winkernelBackend(this.#backendOptions(more))
    return { backend, core: new FakeCore(backend).setNode({ addresses: [this.nodeIp] }).set(...services) }
  }

  /** Two pods without a container: endpoints as a network plug-in makes them. Those of an earlier run are used again. */
  async makePods(): Promise<[TestPod, TestPod]> {
    return [await this.#makePod(1), await this.#makePod(2)]
  }

  async #makePod(at: number): Promise<TestPod> {
    const name = podName(at)
    const given = this.options.podIps?.[at - 1]
    const settings = { Name: name, ...(given !== undefined && { IpConfigurations: [{ IpAddress: given }] }) }
    const endpoint = (await this.hcn.endpointNamed(name)) ?? (await this.hcn.createEndpoint(this.network.ID, settings))
    const ips = (endpoint.IpConfigurations ?? []).flatMap(({ IpAddress }) => IpAddress ?? [])
    const ip = ips.find((each) => familyOf(each) === 'IPv4')
    if (ip !== undefined) return { name, endpoint, ip, ipV6: ips.find((each) => familyOf(each) === 'IPv6') }
    throw new KpngError(
      'unavailable',
      `HNS gave no IPv4 address to the endpoint ${name}. Give two free addresses of the network with --pod-ips.`,
    )
  }
}

/** For messages: `cbr0, nat`. */
export async function networkNames(hcn: Hcn): Promise<string> {
  const names = (await hcn.networks()).flatMap(({ Name }) => Name ?? [])
  return names.length > 0 ? `there are ${names.join(', ')}` : 'there is none yet; the network plug-in makes it'
}
