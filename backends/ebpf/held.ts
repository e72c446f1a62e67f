import type { FrontendAddress, HeldFrontend } from '@kpng/client'
import { endpointKey, type Frontend } from '@kpng/dataplane'
import type { Kernel } from './kernel/kernel.js'
import { keyOf, whyLeftToNft } from './tables/entry.js'

/**
 * What both data planes hold for a frontend. Sockets of this node are sent by the maps, everybody else by nftables, so an endpoint that should be
 * there counts as held only if both have it, and one that should not be there if either has it.
 * @param frontend as it should be; undefined if it should not be there
 */
export function heldByBoth(
  kernel: Kernel,
  address: FrontendAddress,
  frontend: Frontend | undefined,
  nft: HeldFrontend | undefined,
): HeldFrontend | undefined {
  const sockets = kernel.tables.read(keyOf(address))
  const isLeftToNft = !frontend || whyLeftToNft(frontend) !== undefined
  // A map that is full leaves a frontend to nftables too.
  if (address.protocol !== 'tcp' || (!sockets && (isLeftToNft || kernel.tables.leftOut.size > 0))) return nft
  if (!nft && !sockets) return undefined
  const wanted = new Set(frontend?.inside.endpoints.map(endpointKey))
  const [bySockets, byNft] = [new Set(sockets?.endpoints), new Set(nft?.inside)]
  const inside = [...new Set([...bySockets, ...byNft])].filter(
    (each) => !wanted.has(each) || (bySockets.has(each) && byNft.has(each)),
  )
  const clients = sockets ? [...kernel.clientsOf(sockets.set)] : []
  const remembered = clients.map(({ namespace, endpoint }) => ({
    client: `network namespace ${namespace}`,
    endpoint: kernel.tables.endpointText(endpoint),
  }))
  const sessionAffinity = [...(nft?.sessionAffinity ?? []), ...remembered]
  const hasAffinity = nft?.sessionAffinity !== undefined || frontend?.sessionAffinitySeconds !== undefined
  return {
    inside,
    outside: frontend && frontend.outside === frontend.inside ? inside : (nft?.outside ?? []),
    otherwise: nft?.otherwise ?? 'refuse',
    ...(hasAffinity ? { sessionAffinity } : {}),
    ...(nft?.connections === undefined ? {} : { connections: nft.connections + (sockets?.connections ?? 0) }),
  }
}
