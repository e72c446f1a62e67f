/**
 * The Host Compute Network (HCN) as this backend uses it: documents, calls, errors. `computenetwork.ts` makes the calls on Windows, and
 * tests have one in memory. Field names are those of HCN's JSON documents, schema 2.0.
 */
export interface Hcn {
  /** The version of the Host Network Service (HNS), which decides what it can do. */
  version(): Promise<HnsVersion>
  networks(): Promise<readonly HcnNetwork[]>
  networkNamed(name: string): Promise<HcnNetwork | undefined>
  createNetwork(settings: object): Promise<HcnNetwork>
  deleteNetwork(id: string): Promise<void>
  /** The IDs of the endpoints of a network. */
  endpointIds(networkId: string): Promise<readonly string[]>
  /** Undefined: it is gone. */
  endpoint(id: string): Promise<HcnEndpoint | undefined>
  endpointNamed(name: string): Promise<HcnEndpoint | undefined>
  createEndpoint(networkId: string, settings: EndpointSettings): Promise<HcnEndpoint>
  /** Gives the address of an endpoint to the machine itself, as a network interface of its own. */
  attachToHost(endpointId: string): Promise<void>
  /** An endpoint that is gone already is no error. */
  deleteEndpoint(id: string): Promise<void>
  loadBalancerIds(): Promise<readonly string[]>
  /** Undefined: it is gone. */
  loadBalancer(id: string): Promise<HcnLoadBalancer | undefined>
  createLoadBalancer(settings: LoadBalancerSettings): Promise<HcnLoadBalancer>
  /** Replaces all settings. Returns what HNS holds after it, which HNS 15.4 is known not to change at times. */
  modifyLoadBalancer(id: string, settings: LoadBalancerSettings): Promise<HcnLoadBalancer>
  /** A load balancer that is gone already is no error. */
  deleteLoadBalancer(id: string): Promise<void>
}

export interface HnsVersion {
  readonly Major: number
  readonly Minor: number
}

export interface HcnNetwork {
  readonly ID: string
  readonly Name?: string
  /** `L2Bridge`, `Overlay`, … NAT networks come without it. */
  readonly Type?: string
  readonly Ipams?: readonly { readonly Subnets?: readonly { readonly IpAddressPrefix?: string }[] }[]
  readonly Policies?: readonly { readonly Type?: string; readonly Settings?: Readonly<Record<string, unknown>> }[]
}

export interface EndpointSettings {
  readonly Name?: string
  readonly IpConfigurations?: readonly { readonly IpAddress?: string }[]
  readonly MacAddress?: string
  readonly Flags?: number
  readonly Policies?: readonly object[]
}

export interface HcnEndpoint extends EndpointSettings {
  readonly ID: string
}

export interface PortMapping {
  /** The IANA number. */
  readonly Protocol: number
  /** On the endpoints. */
  readonly InternalPort: number
  /** Where clients send to. */
  readonly ExternalPort: number
  readonly DistributionType?: number
  readonly Flags?: number
}

export interface LoadBalancerSettings {
  /** IDs. */
  readonly HostComputeEndpoints: readonly string[]
  /** Overlay networks only. */
  readonly SourceVIP?: string
  /** None: the addresses of the node. */
  readonly FrontendVIPs?: readonly string[]
  /** This backend makes one per load balancer. */
  readonly PortMappings: readonly PortMapping[]
  readonly Flags: number
}

/** As HNS holds it. A creation that failed can leave one without port mappings. */
export interface HcnLoadBalancer extends Partial<LoadBalancerSettings> {
  readonly ID: string
}

export const endpointFlags = { remote: 1 } as const
export const balancerFlags = { directServerReturn: 1, ipv6: 2 } as const
/** `vipExternalIp` is in kube-proxy, not in the documents of HCN. */
export const mappingFlags = { localRoutedVip: 2, useMux: 4, preserveDestination: 8, vipExternalIp: 16 } as const
export const distribution = { sourceIp: 2 } as const
export const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const

export const isRemote = ({ Flags = 0 }: EndpointSettings): boolean => (Flags & endpointFlags.remote) !== 0
export const isOverlay = ({ Type = '' }: HcnNetwork): boolean => Type.toLowerCase() === 'overlay'

/** HRESULTs that a caller must tell apart. Only those of `notFound` mean that an object is gone. */
export const resultCodes = {
  /** ERROR_NOT_FOUND; HCN_E_NETWORK_NOT_FOUND, _ENDPOINT_, _POLICY_ */
  notFound: [0x80070490, 0x803b0001, 0x803b0002, 0x803b0008],
  /** HCN_E_PORT_ALREADY_EXISTS (Windows Server 2019), ERROR_ALREADY_EXISTS (after a restart of HNS) */
  alreadyExists: [0x803b0013, 0x800700b7],
  /** RPC_S_UNKNOWN_IF, RPC_S_SERVER_UNAVAILABLE, RPC_S_CALL_FAILED, HCN_E_MANAGER_STOPPED */
  notRunning: [0x800706b5, 0x800706ba, 0x800706be, 0x803b0020],
  /** E_NOTIMPL */
  notImplemented: [0x80004001],
} as const

/** A call of HCN that failed. The text in the record is in the language of the machine: decide by the code. */
export class HcnError extends Error {
  readonly call: string
  /** The HRESULT, as an unsigned number. */
  readonly code: number

  constructor(call: string, code: number, text = '') {
    super(`${call} failed with 0x${code.toString(16).padStart(8, '0')}${text.trim() && `: ${text.trim()}`}`)
    this.name = 'HcnError'
    this.call = call
    this.code = code
  }

  static is(error: unknown, kind: keyof typeof resultCodes): error is HcnError {
    return error instanceof HcnError && (resultCodes[kind] as readonly number[]).includes(error.code)
  }
}

/** What a version of HNS can do. */
export interface HnsFeatures {
  /** Documents of schema 2, and remote subnets. Without them nothing works. */
  readonly schema2: boolean
  readonly directServerReturn: boolean
  readonly dualStack: boolean
  readonly sessionAffinity: boolean
  readonly modifyLoadBalancer: boolean
}

/** As Microsoft's hcsshim has it. Versions are not in one order: 9.3 has direct server return, 10.0 and 10.1 do not. */
export function featuresOf({ Major, Minor }: HnsVersion): HnsFeatures {
  const since = (major: number, minor: number) => Major > major || (Major === major && Minor >= minor)
  return {
    schema2: since(9, 2),
    directServerReturn: Major === 9 ? Minor >= 3 : since(10, 2),
    dualStack: since(11, 10),
    sessionAffinity: since(12, 0),
    modifyLoadBalancer: since(15, 4),
  }
}
