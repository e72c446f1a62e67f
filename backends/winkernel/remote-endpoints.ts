import { bytesOfIp, type Cidr, CidrSet, parseCidr } from '@kpng/api'
import { type EndpointSettings, endpointFlags, type HcnNetwork } from './hcn.js'

// Endpoints that this backend makes: HNS balances only to endpoints, so pods of other nodes and addresses outside the cluster have one.

/** A part of an overlay network that is on another node. */
interface RemoteSubnet {
  readonly cidr: Cidr
  /** The address of that node. */
  readonly providerAddress: string
}

/** Where the pods of an overlay network are. */
export class RemoteSubnets {
  readonly #subnets: readonly RemoteSubnet[]

  constructor({ Policies = [] }: HcnNetwork) {
    this.#subnets = Policies.flatMap(({ Type, Settings = {} }) => {
      const cidr = Type === 'RemoteSubnetRoute' ? parseCidr(String(Settings.DestinationPrefix)) : undefined
      return cidr ? [{ cidr, providerAddress: String(Settings.ProviderAddress) }] : []
    })
  }

  /** The node that an address is on, or is the address of. Undefined: it is outside the network. */
  providerAddressOf(ip: string): string | undefined {
    const subnet = this.#subnets.find(
      ({ cidr, providerAddress }) => providerAddress === ip || new CidrSet([cidr]).has(ip),
    )
    return subnet?.providerAddress
  }

  /** Whether an address is a node's own, or outside the network. Such an endpoint must see an address that it can answer: the node's. */
  isOutside(ip: string): boolean {
    const providerAddress = this.providerAddressOf(ip)
    return providerAddress === undefined || providerAddress === ip
  }
}

/** The address that kube-proxy gives to a remote endpoint: `02-11-` and the last four bytes of the IP, those of IPv6 from the end. */
export function remoteMac(ip: string): string {
  const bytes = bytesOfIp(ip) ?? new Uint8Array(4)
  const four = bytes.length === 4 ? bytes : bytes.slice(-4).reverse()
  return ['02', '11', ...[...four].map((byte) => byte.toString(16).padStart(2, '0'))].join('-')
}

/** Programs write MAC addresses in different ways. */
export const sameMac = (a: string | undefined, b: string | undefined): boolean => plainMac(a) === plainMac(b)
const plainMac = (mac = ''): string => mac.replace(/[:-]/g, '').toLowerCase()

export const ipOf = ({ IpConfigurations }: EndpointSettings): string | undefined => IpConfigurations?.[0]?.IpAddress

const providerAddressPolicy = (address: string) => ({ Type: 'ProviderAddress', Settings: { ProviderAddress: address } })

/** @param providerAddress overlay networks only: the node that packets for the endpoint are sent to */
export const remoteEndpoint = (
  ip: string,
  providerAddress?: string,
  macAddress: string = remoteMac(ip),
): EndpointSettings => ({
  IpConfigurations: [{ IpAddress: ip }],
  MacAddress: macAddress,
  Flags: endpointFlags.remote,
  ...(providerAddress !== undefined && { Policies: [providerAddressPolicy(providerAddress)] }),
})

/** The name of the local endpoint that has the source VIP of an overlay network, if this backend had to make it. */
export const sourceVipName = 'kpng-source-vip'

export const sourceVipEndpoint = (ip: string, hostMac: string): EndpointSettings => ({
  Name: sourceVipName,
  IpConfigurations: [{ IpAddress: ip }],
  MacAddress: hostMac,
})
