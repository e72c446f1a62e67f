import { familyOf, KpngError } from '@kpng/api'
import type { NodeView } from '@kpng/client'
import type { FrontendTable } from '@kpng/dataplane'
import {
  type Balancer,
  type BalancerNode,
  balancersOf,
  type Overlay,
  preserveDestinationAnnotation,
  type ServiceTraits,
} from './balancers.js'
import { type EndpointSettings, type HcnNetwork, type HnsFeatures, isOverlay } from './hcn.js'
import type { Settings } from './options.js'
import type { Desired } from './reconcile.js'
import { RemoteSubnets, remoteEndpoint, sourceVipEndpoint } from './remote-endpoints.js'

/** What is known of this node when its load balancers are worked out. */
export interface Surroundings {
  readonly settings: Settings
  readonly network: HcnNetwork
  readonly features: HnsFeatures
  /** The ID of the endpoint that health checks go to, if it exists. */
  readonly rootEndpoint: string | undefined
}

export interface DesiredState extends Desired {
  /** What HNS cannot do, as sentences, by Service. */
  readonly problems: ReadonlyMap<string, readonly string[]>
}

type Services = Pick<NodeView, 'services'>

/** What HNS should hold for a table of frontends. */
export function desiredState(table: FrontendTable, view: Services, surroundings: Surroundings): DesiredState {
  const { settings, network, features, rootEndpoint } = surroundings
  const overlay = isOverlay(network) ? overlayOf(table, network, settings) : undefined
  const node: BalancerNode = {
    ...{ features, enableDsr: settings.enableDsr },
    ...(rootEndpoint !== undefined && { healthCheckPort: settings.healthzPort }),
    ...(overlay && { overlay }),
  }
  const balancers: Balancer[] = []
  const problems = new Map<string, string[]>()
  const clusterIps = new Set<string>()
  for (const frontend of table.all()) {
    const made = balancersOf(frontend, traitsOf(view, frontend.service), node)
    balancers.push(...made.balancers)
    if (made.problems.length > 0)
      problems.set(frontend.service, [...(problems.get(frontend.service) ?? []), ...made.problems])
    if (frontend.kind === 'clusterIP' && made.balancers.some(({ endpoints }) => endpoints.length > 0))
      clusterIps.add(frontend.address)
  }
  return {
    ...{ balancers, problems },
    ...(rootEndpoint !== undefined && { rootEndpoint }),
    ...(overlay && { hostMac: overlay.hostMac }),
    endpoints: overlay ? overlayEndpoints(overlay, clusterIps) : [],
    remoteEndpoint: (ip) => remoteEndpoint(ip, overlay && (overlay.subnets.providerAddressOf(ip) ?? overlay.nodeIp)),
  }
}

interface OverlayNode extends Overlay {
  readonly hostMac: string
}

/** On an overlay network the node itself has the source VIP and every cluster IP. */
const overlayEndpoints = (
  { sourceVip, hostMac, nodeIp }: OverlayNode,
  clusterIps: Iterable<string>,
): EndpointSettings[] => [
  sourceVipEndpoint(sourceVip, hostMac),
  ...[...clusterIps].map((ip) => remoteEndpoint(ip, nodeIp, hostMac)),
]

function overlayOf({ node }: FrontendTable, network: HcnNetwork, settings: Settings): OverlayNode {
  const { sourceVip, networkName, hostMacOf } = settings
  if (sourceVip === '') {
    throw new KpngError(
      'usage',
      `The HNS network ${networkName} is an overlay, which needs a source VIP. Give --source-vip (winkernel.sourceVip).`,
    )
  }
  const nodeIp = node.addresses.find((address) => familyOf(address) === familyOf(sourceVip))
  const hostMac = nodeIp === undefined ? undefined : hostMacOf(nodeIp)
  if (nodeIp === undefined || hostMac === undefined) {
    throw new KpngError(
      'unavailable',
      `No interface of this machine has the address of the node (${nodeIp ?? 'unknown'}), which the overlay network ${networkName} needs. ` +
        'Check the addresses of the Node object and --node-name.',
    )
  }
  return { sourceVip, nodeIp, hostMac, subnets: new RemoteSubnets(network) }
}

function traitsOf(view: Services, path: string): ServiceTraits {
  const service = view.services.get(path)?.service
  return {
    preserveDestination: service?.annotations[preserveDestinationAnnotation] === 'true',
    healthCheckNodePort: service?.healthCheckNodePort ?? 0,
  }
}
