import { KpngError, type Log, messageOf } from '@kpng/api'
import { hasCapability, rightsAdvice } from '@kpng/linux'
import type { Family } from '../address.js'
import type { Protocol } from '../portal.js'
import type { Capture, Steering } from './capture.js'
import { elementChanges, rangesOf, skeleton, type TableLayout, tableName } from './nft-ruleset.js'
import { type PortalOptions, portalPlaces } from './portals.js'
import { type RunProgram, runProgram } from './program.js'
import { staleFlowRemoval } from './stale-flows.js'

export interface NftOptions extends PortalOptions {
  /** The name of our table in the families ip and ip6. Default `kpng-userspace`. */
  readonly table?: string
  readonly log: Log
  readonly run?: RunProgram
}

/** Portals by nftables: our own table for each family, written in transactions. Foreign tables are never touched. */
export function nftCapture({ table = 'kpng-userspace', log, run = runProgram, ...portals }: NftOptions): Capture {
  const places = portalPlaces(portals)
  const removeStaleFlows = staleFlowRemoval({ log })
  const layout = (family: Family): TableLayout => ({ family, table })
  let families: readonly Family[] = ['v4', 'v6']
  /** What of the node is in the rules themselves. */
  let writtenNode = ''

  const write = async (lines: readonly string[]) => {
    if (lines.length > 0) await run('nft', ['-f', '-'], `${lines.join('\n')}\n`)
  }
  const fullText = (family: Family, steering: Steering): string[] => {
    const name = tableName(layout(family))
    const boundIp = (protocol: Protocol) => places.boundIp(family, protocol, steering.nodeIps)
    const inside = rangesOf(steering.insideCidrs, family)
    return [
      // Adding first makes the deletion succeed when there is no such table.
      `add table ${name}`,
      `delete table ${name}`,
      skeleton(layout(family), { tcp: boundIp('tcp'), udp: boundIp('udp') }),
      ...(inside.length > 0 ? [`add element ${name} inside { ${inside.join(', ')} }`] : []),
      ...elementChanges(layout(family), [], steering.open),
    ]
  }

  return {
    name: 'nft',
    listensOnPortals: false,
    place: places.place,
    isRight: places.isRight,
    release: places.release,
    async setup() {
      await listTables(run)
      families = await usableFamilies(run, log)
    },
    async steer(steering) {
      const node = JSON.stringify([steering.insideCidrs, steering.nodeIps])
      const full = steering.full || node !== writtenNode
      const lines = families.flatMap((family) =>
        full ? fullText(family, steering) : elementChanges(layout(family), steering.removed, steering.added),
      )
      await write(lines)
      writtenNode = node
      await removeStaleFlows(steering)
    },
    async cleanup() {
      const present = await listTables(run)
      const ours = (['v4', 'v6'] as const).map((family) => tableName(layout(family)))
      await write(ours.filter((name) => present.includes(`table ${name}\n`)).map((name) => `delete table ${name}`))
    },
  }
}

async function listTables(run: RunProgram): Promise<string> {
  try {
    return await run('nft', ['list', 'tables'])
  } catch (error) {
    if (error instanceof KpngError && error.code === 'unsupported') throw error
    const advice = hasCapability('CAP_NET_ADMIN') ? '' : ` ${rightsAdvice('CAP_NET_ADMIN')}`
    throw new KpngError('unsupported', `nft cannot read this machine's tables: ${messageOf(error)}.${advice}`, {
      cause: error,
    })
  }
}

/** A kernel without IPv6 is served in IPv4 alone. */
async function usableFamilies(run: RunProgram, log: Log): Promise<Family[]> {
  try {
    await run('nft', ['-c', '-f', '-'], 'add table ip6 kpng-userspace-check\n')
    return ['v4', 'v6']
  } catch (error) {
    log.warn('nftables has no IPv6 here: services are proxied in IPv4 only', { error: messageOf(error) })
    return ['v4']
  }
}
