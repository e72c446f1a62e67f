import { FakeCore, type TestService } from '@kpng/client/testing'
import { winkernelBackend } from '../backend.js'
import type { Hcn, HcnNetwork } from '../hcn.js'
import type { WinkernelOptions } from '../options.js'

// A Windows node for tests: a network with two pods, as a network plug-in would make it, and the backend on it.

export const nodeIp = '10.0.0.4'
export const sourceVip = '10.244.1.2'
export const hostMac = '00-15-5D-01-02-03'

export type NetworkType = 'l2bridge' | 'overlay'

const subnet = (prefix: string) => ({ IpAddressPrefix: prefix })

/** 10.244.1.0/24 is on this node, 10.244.2.0/24 on 10.0.0.5. */
export const networkSettings = (type: NetworkType) => ({
  Name: 'cbr0',
  Type: type === 'overlay' ? 'Overlay' : 'L2Bridge',
  Ipams: [{ Type: 'Static', Subnets: [subnet('10.244.1.0/24'), subnet('fd00:244:1::/64')] }],
  ...(type === 'overlay' && {
    Policies: [
      {
        Type: 'RemoteSubnetRoute',
        Settings: { DestinationPrefix: '10.244.2.0/24', ProviderAddress: '10.0.0.5', IsolationId: 4096 },
      },
    ],
  }),
})

export async function makeNetwork(hcn: Hcn, type: NetworkType): Promise<HcnNetwork> {
  const network = await hcn.createNetwork(networkSettings(type))
  const pod = (name: string, ...ips: string[]) =>
    hcn.createEndpoint(network.ID, { Name: name, IpConfigurations: ips.map((ip) => ({ IpAddress: ip })) })
  await pod('pod-5', '10.244.1.5', 'fd00:244:1::5')
  await pod('pod-6', '10.244.1.6', 'fd00:244:1::6')
  await pod('cbr0-root', '10.244.1.1')
  return network
}

export const options = (hcn: Hcn, type: NetworkType): WinkernelOptions => ({
  ...{ networkName: 'cbr0', openHcn: async () => hcn, hostMacOf: () => hostMac, checkIntervalMs: 0 },
  ownAddresses: () => [nodeIp],
  ...(type === 'overlay' && { sourceVip }),
})

/** The backend behind a core, on a network that exists. */
export function start(hcn: Hcn, type: NetworkType, more: WinkernelOptions = {}, ...services: TestService[]): FakeCore {
  const backend = winkernelBackend({ ...options(hcn, type), ...more })
  const node = { addresses: [nodeIp, 'fd00::4'], podCidrs: ['10.244.1.0/24', 'fd00:244:1::/64'] }
  return new FakeCore(backend).setNode(node).set(...services)
}
