import { KpngError } from '@kpng/api'
import { rightsAdvice } from '../capabilities.js'
import { loadLibc } from '../libc.js'
import { MessageBuffer } from '../netlink/buffer.js'
import { EPERM, errnoText, NLM_F_DUMP } from '../netlink/constants.js'
import { dump } from '../netlink/dump.js'
import { acknowledgementIn, attributesOf, findAttribute, textOf } from '../netlink/messages.js'
import { nftMessage } from './constants.js'
import { familyNumber, type TableFamily, tableFamilies } from './family.js'
import { NftSocket, nftType } from './socket.js'
import { type TableAt, writeTableRemoval } from './table-messages.js'

/** The tables whose name is wanted. */
export async function listTables(isWanted: (name: string) => boolean): Promise<TableAt[]> {
  return await withSocket((socket) => tablesIn(socket, isWanted))
}

/** Removes the tables whose name is wanted, all or none. Returns them. */
export async function removeTables(isWanted: (name: string) => boolean): Promise<TableAt[]> {
  return await withSocket(async (socket) => {
    const wanted = await tablesIn(socket, isWanted)
    if (wanted.length === 0) return []
    await socket.transact(`to remove ${wanted.length} tables`, (buffer) => {
      for (const at of wanted) writeTableRemoval(buffer, at)
    })
    return wanted
  })
}

async function withSocket<Result>(work: (socket: NftSocket) => Promise<Result>): Promise<Result> {
  const socket = new NftSocket(await loadLibc())
  try {
    return await work(socket)
  } finally {
    socket.close()
  }
}

async function tablesIn(socket: NftSocket, isWanted: (name: string) => boolean): Promise<TableAt[]> {
  const found: TableAt[] = []
  for (const family of tableFamilies) {
    for (const name of await tableNames(socket, family)) if (isWanted(name)) found.push({ family, name })
  }
  return found
}

const TABLE_NAME = 1

/** The tables of a family in this network namespace. */
async function tableNames(socket: NftSocket, family: TableFamily): Promise<string[]> {
  const names: string[] = []
  await socket.inTurn(async (netlink, sequence) => {
    const request = new MessageBuffer(sequence)
    request.beginNetfilter(nftType(nftMessage.GETTABLE), NLM_F_DUMP, familyNumber[family])
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
