import { KpngError } from '@kpng/api'
import {
  acknowledgementIn,
  attributesOf,
  dump,
  EPERM,
  errnoText,
  findAttribute,
  loadLibc,
  MessageBuffer,
  NLM_F_DUMP,
  rightsAdvice,
  textOf,
} from '@kpng/linux'
import type { ChainPath } from '../elements/element.js'
import { type TableFamily, tableFamilies } from '../rules/family.js'
import { defaultTableName, isForeignTable, sealSet } from '../rules/names.js'
import type { RuleSettings } from '../rules/skeleton.js'
import { skeletonVersion } from '../rules/skeleton-text.js'
import { nftMessage } from './constants.js'
import { type NetlinkWriter, NftSocket } from './netlink-writer.js'
import type { TableOutline } from './outline.js'
import { nftType, protocolFamily } from './set-elements.js'
import { type TableAt, writeTableRemoval } from './skeleton-messages.js'

/** `ours`: exactly the rules and sets that this version makes. `missing`: no table. `other`: another version, or somebody changed it. */
export type TableState = 'ours' | 'missing' | 'other'

/** The state of our tables, and the chains that earlier runs added to the skeleton. */
export async function inspectTables(
  writer: NetlinkWriter,
  families: readonly TableFamily[],
  settings: RuleSettings,
): Promise<{ states: Map<TableFamily, TableState>; extraChains: Set<ChainPath> }> {
  const states = new Map<TableFamily, TableState>()
  const extraChains = new Set<ChainPath>()
  for (const family of families) {
    const outline = await writer.outline(family)
    states.set(family, outline ? stateOf(outline, skeletonVersion(family, settings)) : 'missing')
    for (const chain of outline?.rememberChains.keys() ?? []) extraChains.add(`${family} ${chain}`)
  }
  return { states, extraChains }
}

function stateOf({ sets, rememberChains, digest }: TableOutline, version: string): TableState {
  const isOurs =
    sets.has(version) && sets.has(sealSet(digest)) && [...rememberChains.values()].every((isWhole) => isWhole)
  return isOurs ? 'ours' : 'other'
}

/** @param tableName removes the tables of this name; undefined: all tables of kpng */
export async function removeTables(tableName: string | undefined): Promise<void> {
  const isOurs = (name: string) => {
    if (tableName !== undefined) return name === tableName
    return name === defaultTableName || (name.startsWith(`${defaultTableName}-`) && !isForeignTable(name))
  }
  const socket = new NftSocket(await loadLibc())
  try {
    const ours: TableAt[] = []
    for (const family of tableFamilies) {
      for (const name of await tableNames(socket, family)) if (isOurs(name)) ours.push({ family, name })
    }
    if (ours.length === 0) return
    await socket.transact(`to remove ${ours.length} tables`, (buffer) => {
      for (const at of ours) writeTableRemoval(buffer, at)
    })
  } finally {
    socket.close()
  }
}

const TABLE_NAME = 1

/** The tables of a family in this network namespace. */
async function tableNames(socket: NftSocket, family: TableFamily): Promise<string[]> {
  const names: string[] = []
  await socket.inTurn(async (netlink, sequence) => {
    const request = new MessageBuffer(sequence)
    request.beginNetfilter(nftType(nftMessage.GETTABLE), NLM_F_DUMP, protocolFamily(family))
    request.end()
    await dump(netlink, request.bytes, (message) => {
      const errno = acknowledgementIn(message)?.errno ?? 0
      if (errno !== 0) throw cannotList(errno)
      const name = findAttribute(attributesOf(message), TABLE_NAME)
      if (name) names.push(textOf(name))
    })
  })
  return names
}

function cannotList(errno: number): KpngError {
  const next =
    errno === EPERM ? rightsAdvice('CAP_NET_ADMIN') : 'Check that the kernel has nftables (CONFIG_NF_TABLES).'
  return new KpngError('unavailable', `kpng cannot list the nftables tables: ${errnoText(errno)}. ${next}`)
}
