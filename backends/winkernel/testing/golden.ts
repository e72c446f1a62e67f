import { type Kind, kindsOf } from '../conformance/kinds.js'
import type { Hcn, HcnEndpoint, HcnLoadBalancer, HnsVersion } from '../hcn.js'
import { ipOf } from '../remote-endpoints.js'
import { makeNetwork, type NetworkType, start } from './node.js'

/** 20 kinds of Services, with the addresses of the node in node.ts. */
export const kinds = kindsOf(
  {
    ...{ name: 'web', clusterIp: '10.96.0.10', clusterIpV6: 'fd00:96::10', nodePort: 30080 },
    ...{ externalIp: '198.51.100.7', loadBalancerIp: '203.0.113.9', healthCheckNodePort: 32_000 },
  },
  {
    ...{ local: ['10.244.1.5', '10.244.1.6'], localV6: 'fd00:244:1::5' },
    ...{ remote: ['10.244.2.7', '10.244.2.8'], remoteV6: 'fd00:244:2::7' },
    ...{ otherNode: '10.0.0.5', outside: '192.0.2.33', rootEndpointName: 'cbr0-root' },
  },
)

const versions = [
  { Major: 9, Minor: 5 },
  { Major: 12, Minor: 0 },
  { Major: 15, Minor: 4 },
]

/**
 * What each kind of Service becomes, on each type of network and in each generation of HNS: the documents as HNS holds them after a sync,
 * with the IPs of endpoints in the place of their IDs.
 * @param hcnOf an HNS of a version, without any object
 */
export async function goldenText(hcnOf: (version: HnsVersion) => Hcn | Promise<Hcn>): Promise<string> {
  const lines: string[] = []
  for (const type of ['l2bridge', 'overlay'] as const) {
    for (const name of Object.keys(kinds)) {
      const versionsByText = new Map<string, string[]>()
      for (const version of versions) {
        const documents = await documentsOf(name, type, await hcnOf(version))
        const text = documents.map((line) => `  ${line}`).join('\n') || '  nothing'
        versionsByText.set(text, [...(versionsByText.get(text) ?? []), `${version.Major}.${version.Minor}`])
      }
      for (const [text, alike] of versionsByText) lines.push(`${name} (${type}, HNS ${alike.join(', ')})`, text, '')
    }
  }
  return lines.join('\n')
}

async function documentsOf(name: string, type: NetworkType, hcn: Hcn): Promise<string[]> {
  const network = await makeNetwork(hcn, type)
  const pods = new Set(await hcn.endpointIds(network.ID))
  const { service, options } = kinds[name] as Kind
  const core = start(hcn, type, options, service)
  await core.sync()
  await core.stop()
  const endpoints = new Map<string, HcnEndpoint>()
  for (const id of await hcn.endpointIds(network.ID)) endpoints.set(id, (await hcn.endpoint(id)) as HcnEndpoint)
  const balancers: HcnLoadBalancer[] = []
  for (const id of await hcn.loadBalancerIds()) balancers.push((await hcn.loadBalancer(id)) as HcnLoadBalancer)
  return [
    ...balancers.map((balancer) => balancerText(balancer, endpoints)).sort(),
    ...[...endpoints.values()]
      .filter(({ ID }) => !pods.has(ID))
      .map(endpointText)
      .sort(),
  ]
}

function balancerText(balancer: HcnLoadBalancer, endpoints: ReadonlyMap<string, HcnEndpoint>): string {
  const { HostComputeEndpoints = [], SourceVIP, FrontendVIPs, PortMappings, Flags } = balancer
  const ips = HostComputeEndpoints.map((id) => ipOf(endpoints.get(id) ?? {})).sort()
  return JSON.stringify({ HostComputeEndpoints: ips, SourceVIP, FrontendVIPs, PortMappings, Flags })
}

const endpointText = ({ Name, IpConfigurations, MacAddress, Flags, Policies }: HcnEndpoint): string =>
  JSON.stringify({ Name, IpConfigurations, MacAddress, Flags, Policies })
