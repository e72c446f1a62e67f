import { readFile } from 'node:fs/promises'
import type { FrontendAddress, HeldFrontend } from '@kpng/client'
import { endpointKey } from '@kpng/dataplane'
import type { KernelDestination, KernelServer } from './ipvs-messages.js'
import { addressOf } from './listing.js'
import type { ReadTable } from './nft.js'
import { serverKey } from './virtual-servers.js'

type ReadServer = (
  key: string,
) => Promise<{ server: KernelServer; destinations: readonly KernelDestination[] } | undefined>

/** What the kernel does with one frontend, from the rules and from IPVS. Undefined: nothing. */
export async function heldIn(
  { sets }: ReadTable,
  frontend: FrontendAddress,
  readServer: ReadServer,
): Promise<HeldFrontend | undefined> {
  const { family, protocol, port } = frontend
  const isWhole = protocol === 'any'
  const set = (name: string): ReadonlyMap<string, string> => sets.get(isWhole ? `whole-${name}` : name) ?? new Map()
  const address = frontend.kind === 'nodePort' ? nodePortAddress(frontend, sets) : frontend.address
  const key = isWhole ? `${address} . tcp` : `${address} . ${protocol} . ${port}`
  if (address === undefined || !set('servers').has(key)) return undefined
  const byMark = async (name: string) => {
    const mark = set(name).get(key)
    return mark === undefined ? undefined : await readServer(`${family} mark ${mark}`)
  }
  const byAddress = isWhole ? undefined : await readServer(serverKey({ family, address, protocol, port, mark: 0 }))
  const outside = (await byMark('marks-outside')) ?? byAddress
  const inside = (await byMark('marks-inside')) ?? outside
  const open = (name: string, from: typeof outside) =>
    set(name).has(key) ? [] : (from?.destinations ?? []).filter(({ weight }) => weight > 0).map(endpointKey)
  const hasAffinity = [inside, outside].some(
    (each) => each?.server.persistenceSeconds || each?.server.scheduler === 'sh',
  )
  return {
    inside: open('refused-inside', inside),
    outside: open('refused-outside', outside),
    otherwise: set('refused-outside').get(key) === 'drop' ? 'drop' : 'refuse',
    ...(hasAffinity ? { sessionAffinity: await rememberedClients(address, port) } : {}),
    connections: [...new Set([inside, outside])].reduce((sum, each) => sum + (each?.server.connections ?? 0), 0),
  }
}

/** A node port is the same on all addresses of the node. */
function nodePortAddress({ protocol, port }: FrontendAddress, sets: ReadTable['sets']): string | undefined {
  for (const key of sets.get('servers')?.keys() ?? []) {
    const [address = '', ...rest] = key.split(' . ')
    if (rest.join() === `${protocol},${port}` && !sets.get('addresses')?.has(address)) return address
  }
  return undefined
}

/** Clients that IPVS keeps with their endpoint: connections without a client's port. */
async function rememberedClients(address: string, port: number): Promise<{ client: string; endpoint: string }[]> {
  const text = await readFile('/proc/net/ip_vs_conn', 'utf8').catch(() => '')
  return [...text.matchAll(/^\S+ +(\S+) 0000 +(\S+) ([0-9A-F]{4}) +(\S+) ([0-9A-F]{4}) /gm)].flatMap(
    ([, client = '', virtual = '', virtualPort = '', ip = '', endpointPort = '']) =>
      addressOf(virtual) === address && Number.parseInt(virtualPort, 16) === port
        ? [
            {
              client: addressOf(client),
              endpoint: endpointKey({ ip: addressOf(ip), port: Number.parseInt(endpointPort, 16) }),
            },
          ]
        : [],
  )
}
