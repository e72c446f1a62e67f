import type { Family } from '../address.js'
import { tableName } from '../names.js'
import type { TableOutline } from '../writer.js'
import { NLM_F_DUMP, nftMessage } from './constants.js'
import { dump } from './dump.js'
import { MessageBuffer } from './message-buffer.js'
import { attributesOf, findAttribute, textOf } from './messages.js'
import { nftType, protocolFamily } from './set-elements.js'
import type { NetlinkSocket } from './socket.js'

/** In all messages about things in a table, the attribute with the table's name. */
const TABLE = 1
const SET_NAME = 2
const CHAIN_NAME = 3
const RULE_CHAIN = 2

/** What is in our table beside elements; undefined when there is no table. Undefined, too, when it changed meanwhile. */
export async function readOutline(socket: NetlinkSocket, family: Family): Promise<TableOutline | undefined> {
  const namesIn = async (message: number, attribute: number): Promise<string[]> => {
    const request = new MessageBuffer(1)
    request.begin(nftType(message), NLM_F_DUMP, protocolFamily(family))
    if (message !== nftMessage.GETTABLE) request.text(TABLE, tableName)
    request.end()
    const found: string[] = []
    await dump(socket, request.bytes, (answer) => {
      const table = findAttribute(attributesOf(answer), TABLE)
      const name = findAttribute(attributesOf(answer), attribute)
      if (table && name && textOf(table) === tableName) found.push(textOf(name))
    })
    return found
  }
  if ((await namesIn(nftMessage.GETTABLE, TABLE)).length === 0) return undefined
  const chains = new Map<string, number>()
  for (const chain of await namesIn(nftMessage.GETCHAIN, CHAIN_NAME)) chains.set(chain, 0)
  for (const chain of await namesIn(nftMessage.GETRULE, RULE_CHAIN)) chains.set(chain, (chains.get(chain) ?? 0) + 1)
  return { sets: new Set(await namesIn(nftMessage.GETSET, SET_NAME)), chains }
}
