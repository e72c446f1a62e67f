import { servicePath } from '@kpng/api'
import { item, type TestService } from '@kpng/client/testing'
import type { FrontendTable } from '@kpng/dataplane'
import { type Balancer, contentOf, keyOf } from '../balancers.js'
import { desiredState } from '../desired.js'
import type { HcnEndpoint, HcnLoadBalancer, LoadBalancerSettings } from '../hcn.js'
import type { Settings } from '../options.js'
import { ipOf, sameMac } from '../remote-endpoints.js'
import type { TestedNode } from './node.js'
import { readAll } from './own.js'

/** What HNS holds, compared with what it should hold. */
export interface Comparison {
  /** By Service: what is missing or different, as sentences. Without an entry it is right. */
  readonly problems: ReadonlyMap<string, readonly string[]>
  /** By Service: the documents as HNS holds them, with IPs in the place of the IDs of endpoints. */
  readonly held: ReadonlyMap<string, readonly object[]>
}

/** @param failures what the backend was told by HNS, by the name of the load balancer */
export async function compare(
  node: TestedNode,
  {
    frontends,
    settings,
    services,
    failures,
  }: {
    readonly frontends: FrontendTable
    readonly settings: Settings
    readonly services: readonly TestService[]
    readonly failures: ReadonlyMap<string, string>
  },
): Promise<Comparison> {
  const { hcn, network, features, own } = node
  const root = settings.forwardHealthCheckVip ? await hcn.endpointNamed(settings.rootEndpointName) : undefined
  const view = { services: new Map(services.map((each) => [servicePath('default', each.name), item(each)])) }
  const desired = desiredState(frontends, view, { settings, network, features, rootEndpoint: root?.ID })
  const endpoints = await readAll(await node.part.endpointIds(network.ID), (id) => hcn.endpoint(id))
  const balancers = await own.balancers(hcn)
  const problems = new Map<string, string[]>()
  const held = new Map<string, object[]>()
  const add = <T>(to: Map<string, T[]>, service: string, one: T) => to.set(service, [...(to.get(service) ?? []), one])
  const wanted = new Set<string>()
  for (const balancer of desired.balancers) {
    const { service, name, key } = balancer
    const expected = expectedSettings(balancer, endpoints, root?.ID)
    if (expected.HostComputeEndpoints.length > 0) wanted.add(key)
    const found = balancers.find((each) => keyOf(each) === key)
    if (found) add(held, service, withIps(found, endpoints))
    const why = difference(name, expected, found, failures.get(name))
    if (why !== undefined) add(problems, service, why)
    for (const { ip, isLocal } of balancer.endpoints === 'root' ? [] : balancer.endpoints) {
      const wrong = isLocal ? undefined : endpointDifference(desired.remoteEndpoint(ip), endpoints, failures)
      if (wrong !== undefined) add(problems, service, wrong)
    }
  }
  for (const found of balancers) {
    const key = keyOf(found) ?? found.ID
    if (!wanted.has(key)) add(problems, 'other', `HNS holds a load balancer that nobody wants: ${key}.`)
  }
  return { problems, held }
}

function expectedSettings(
  { endpoints, settings }: Balancer,
  known: readonly HcnEndpoint[],
  rootId: string | undefined,
): LoadBalancerSettings {
  const idOf = (ip: string) =>
    known.find((each) => each.IpConfigurations?.some(({ IpAddress }) => IpAddress === ip))?.ID
  const ids = endpoints === 'root' ? [rootId ?? ''] : endpoints.map(({ ip }) => idOf(ip) ?? `no endpoint ${ip}`)
  return { HostComputeEndpoints: ids, ...settings }
}

/** A sentence, or undefined if HNS holds what is expected. */
function difference(
  name: string,
  expected: LoadBalancerSettings,
  found: HcnLoadBalancer | undefined,
  failure: string | undefined,
): string | undefined {
  const needsNone = expected.HostComputeEndpoints.length === 0
  if (needsNone) return found && `HNS holds ${name}, which has no endpoints.`
  if (!found) return `HNS does not hold ${name}${failure === undefined ? '' : `: ${failure}`}.`
  if (contentOf(found) === contentOf(expected)) return undefined
  const { ID: _, ...rest } = found
  return `HNS holds ${name} differently: expected ${JSON.stringify(expected)}, found ${JSON.stringify(rest)}.`
}

function endpointDifference(
  expected: Partial<HcnEndpoint>,
  known: readonly HcnEndpoint[],
  failures: ReadonlyMap<string, string>,
): string | undefined {
  const ip = ipOf(expected)
  const found = known.find((each) => ipOf(each) === ip)
  const failure = failures.get(`endpoint ${ip}`)
  if (!found) return `HNS does not hold the remote endpoint ${ip}${failure === undefined ? '' : `: ${failure}`}.`
  const provider = ({ Policies = [] }: Partial<HcnEndpoint>) =>
    JSON.stringify(Policies.filter((policy) => (policy as { Type?: string }).Type === 'ProviderAddress'))
  const isSame =
    sameMac(found.MacAddress, expected.MacAddress) &&
    found.Flags === expected.Flags &&
    (expected.Policies === undefined || provider(found) === provider(expected))
  if (isSame) return undefined
  return `HNS holds the remote endpoint ${ip} differently: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}.`
}

function withIps(balancer: HcnLoadBalancer, endpoints: readonly HcnEndpoint[]): object {
  const ips = (balancer.HostComputeEndpoints ?? []).map((id) => {
    const found = endpoints.find(({ ID }) => ID.toLowerCase() === id.toLowerCase())
    return (found && ipOf(found)) ?? id
  })
  return { ...balancer, HostComputeEndpoints: ips }
}
