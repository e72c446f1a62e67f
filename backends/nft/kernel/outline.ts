import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { KpngError } from '@kpng/api'
import {
  acknowledgementIn,
  attributesOf,
  dump,
  errnoText,
  MessageBuffer,
  type NetlinkSocket,
  NLM_F_DUMP,
  readNftGeneration,
  textOf,
} from '@kpng/linux'
import type { TableFamily } from '../rules/family.js'
import { isSealSet, rememberedSeconds } from '../rules/names.js'
import { nftMessage } from './constants.js'
import { saysAllOf } from './expressions.js'
import { rememberExpressions } from './remember-chain.js'
import { nftType, protocolFamily } from './set-elements.js'
import type { TableAt } from './skeleton-messages.js'

// Which attributes identify an object in a table. Not included: handles, which are new each time; counters; and the comments that
// the nft command writes for itself.

const table = { get: nftMessage.GETTABLE, name: 1, said: [2] } as const // flags
const sets = { get: nftMessage.GETSET, name: 2, said: [3, 4, 5, 6, 7, 9, 11, 17, 18] } as const // flags, types, lengths, size, time-out, counters
const chains = { get: nftMessage.GETCHAIN, name: 3, said: [4, 5, 7, 10] } as const // hook, policy, type, flags
const rules = { get: nftMessage.GETRULE, name: 2, said: [4] } as const // the chain that it is in; expressions

/** The attribute with the table's name, in every kind of message. */
const TABLE = 1

/** How often a table is read again if it changed while it was read. */
const attempts = 5

interface Thing {
  readonly name: string
  /** Its attributes, as the kernel returned them: bytes, one per character. */
  readonly said: readonly string[]
}

/** What a table looks like without its elements. */
export interface TableOutline {
  readonly sets: ReadonlySet<string>
  /** The chains that remember clients, and whether their rules are the ones that we write. */
  readonly rememberChains: ReadonlyMap<string, boolean>
  /**
   * Differs if the table's flags, sets, chains, hooks, policies or rules do; not if its elements or counts do. The chains that
   * remember clients and the seal come after the digest and are not part of it.
   */
  readonly digest: string
}

/** The content of a table without elements; undefined if there is no such table. */
export async function readOutline(socket: NetlinkSocket, at: TableAt): Promise<TableOutline | undefined> {
  let before: TableOutline | undefined
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const generation = await readNftGeneration(socket)
    const found = await outlineNow(socket, at)
    // The outline consists of several lists. They are consistent if nobody changed anything between the first and the last, or if they
    // are the same twice: then others change only other tables, as a proxy with iptables-nft on the same node may do all the time.
    if ((await readNftGeneration(socket)) === generation || (attempt > 1 && isDeepStrictEqual(found, before)))
      return found
    before = found
  }
  throw new KpngError(
    'unavailable',
    `The table "${at.family} ${at.name}" changed each time it was read. kpng tries again later.`,
  )
}

async function outlineNow(socket: NetlinkSocket, at: TableAt): Promise<TableOutline | undefined> {
  const [own] = await thingsIn(socket, at, table)
  if (!own) return undefined
  const parts = [partOf('table', own)]
  const setsFound = await thingsIn(socket, at, sets)
  for (const set of setsFound) if (!isSealSet(set.name)) parts.push(partOf('set', set))
  const rulesOf = new Map<string, Thing[]>()
  for (const chain of await thingsIn(socket, at, chains)) {
    rulesOf.set(chain.name, [])
    if (rememberedSeconds(chain.name) === undefined) parts.push(partOf('chain', chain))
  }
  for (const rule of await thingsIn(socket, at, rules)) rulesOf.get(rule.name)?.push(rule)
  const rememberChains = new Map<string, boolean>()
  for (const [chain, inOrder] of rulesOf) {
    const seconds = rememberedSeconds(chain)
    if (seconds === undefined) parts.push(inOrder.map((rule) => partOf('rule', rule)).join())
    else rememberChains.set(chain, areRememberRules(at.family, inOrder, seconds))
  }
  return { sets: new Set(setsFound.map(({ name }) => name)), rememberChains, digest: digestOf(parts) }
}

const partOf = (kind: string, { name, said }: Thing): string =>
  `${kind} ${name} ${said.map((value) => `${value.length} ${value}`).join(' ')}`

function areRememberRules(family: TableFamily, found: readonly Thing[], seconds: number): boolean {
  const ours = rememberExpressions(family, seconds)
  return (
    found.length === ours.length &&
    ours.every((expressions, index) => saysAllOf(Buffer.from(found[index]?.said[0] ?? '', 'latin1'), expressions))
  )
}

async function thingsIn(
  socket: NetlinkSocket,
  { family, name: tableName }: TableAt,
  { get, name, said }: { readonly get: number; readonly name: number; readonly said: readonly number[] },
): Promise<Thing[]> {
  const request = new MessageBuffer(1)
  request.beginNetfilter(nftType(get), NLM_F_DUMP, protocolFamily(family))
  if (get !== nftMessage.GETTABLE) request.text(TABLE, tableName)
  request.end()
  const found: Thing[] = []
  await dump(socket, request.bytes, (message) => {
    const failure = acknowledgementIn(message)
    if (failure && failure.errno !== 0) {
      throw new KpngError(
        'unavailable',
        `The table "${family} ${tableName}" cannot be read: ${errnoText(failure.errno)}.`,
      )
    }
    const values = new Map<number, Buffer>()
    for (const { type, value } of attributesOf(message)) values.set(type, value)
    const [ofTable, own] = [values.get(TABLE), values.get(name)]
    if (!ofTable || !own || textOf(ofTable) !== tableName) return
    // Copies: the next message comes into the same memory.
    found.push({ name: textOf(own), said: said.map((attribute) => values.get(attribute)?.toString('latin1') ?? '') })
  })
  return found
}

/** One digest of objects that may come in any order. */
const digestOf = (parts: readonly string[]): string =>
  createHash('sha256')
    .update([...parts].sort().join('\0'), 'latin1')
    .digest('hex')
    .slice(0, 16)
