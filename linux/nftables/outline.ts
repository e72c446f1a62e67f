import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { KpngError } from '@kpng/api'
import { MessageBuffer } from '../netlink/buffer.js'
import { errnoText, NLM_F_DUMP } from '../netlink/constants.js'
import { dump } from '../netlink/dump.js'
import { acknowledgementIn, attributesIn, attributesOf, textOf } from '../netlink/messages.js'
import type { NetlinkSocket } from '../netlink/socket.js'
import { nftMessage } from './constants.js'
import { familyNumber, type TableFamily } from './family.js'
import { isSealSet, type Ruleset } from './ruleset.js'
import { nftType, readNftGeneration } from './socket.js'
import type { Statement } from './statement.js'
import { expressionBytes, type TableAt } from './table-messages.js'

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
  /** The extra chains, and whether their rules are the ones that we write. */
  readonly extraChains: ReadonlyMap<string, boolean>
  /**
   * Differs if the table's flags, sets, chains, hooks, policies or rules do; not if its elements or counts do. The extra
   * chains and the seal come after the digest and are not part of it.
   */
  readonly digest: string
}

/** The content of a table without elements; undefined if there is no such table. */
export async function readOutline(
  socket: NetlinkSocket,
  family: TableFamily,
  ruleset: Ruleset,
): Promise<TableOutline | undefined> {
  let before: TableOutline | undefined
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const generation = await readNftGeneration(socket)
    const found = await outlineNow(socket, family, ruleset)
    // The outline consists of several lists. They are consistent if nobody changed anything between the first and the last, or if they
    // are the same twice: then others change only other tables, as a proxy with iptables-nft on the same node may do all the time.
    if ((await readNftGeneration(socket)) === generation || (attempt > 1 && isDeepStrictEqual(found, before)))
      return found
    before = found
  }
  throw new KpngError(
    'unavailable',
    `The table "${family} ${ruleset.tableName}" changed each time it was read. kpng tries again later.`,
  )
}

async function outlineNow(
  socket: NetlinkSocket,
  family: TableFamily,
  { tableName, extraChain = () => undefined }: Ruleset,
): Promise<TableOutline | undefined> {
  const at = { family, name: tableName }
  const [own] = await thingsIn(socket, at, table)
  if (!own) return undefined
  const parts = [partOf('table', own)]
  const setsFound = await thingsIn(socket, at, sets)
  for (const set of setsFound) if (!isSealSet(set.name)) parts.push(partOf('set', set))
  const rulesOf = new Map<string, Thing[]>()
  for (const chain of await thingsIn(socket, at, chains)) {
    rulesOf.set(chain.name, [])
    if (!extraChain(family, chain.name)) parts.push(partOf('chain', chain))
  }
  for (const rule of await thingsIn(socket, at, rules)) rulesOf.get(rule.name)?.push(rule)
  const extraChains = new Map<string, boolean>()
  for (const [chain, inOrder] of rulesOf) {
    const extra = extraChain(family, chain)
    if (extra) extraChains.set(chain, areRules(inOrder, extra))
    else parts.push(inOrder.map((rule) => partOf('rule', rule)).join())
  }
  return { sets: new Set(setsFound.map(({ name }) => name)), extraChains, digest: digestOf(parts) }
}

const partOf = (kind: string, { name, said }: Thing): string =>
  `${kind} ${name} ${said.map((value) => `${value.length} ${value}`).join(' ')}`

const areRules = (found: readonly Thing[], rules: readonly Statement[]): boolean =>
  found.length === rules.length &&
  rules.every(({ expressions }, index) =>
    saysAllOf(Buffer.from(found[index]?.said[0] ?? '', 'latin1'), expressionBytes(expressions)),
  )

const EXPRESSION_NAME = 1
const EXPRESSION_DATA = 2

/** Whether expressions read from the kernel are these. The kernel adds attributes with its defaults. */
function saysAllOf(told: Buffer, expressions: Buffer): boolean {
  const [kernels, ours] = [[...attributesIn(told)], [...attributesIn(expressions)]]
  return (
    kernels.length === ours.length &&
    ours.every(({ value }, index) => saysAllOfOne(kernels[index]?.value ?? Buffer.alloc(0), value))
  )
}

function saysAllOfOne(told: Buffer, expression: Buffer): boolean {
  const [kernels, ours] = [valuesIn(told), valuesIn(expression)]
  const [kernelData, ourData] = [kernels.get(EXPRESSION_DATA), ours.get(EXPRESSION_DATA)]
  if (nameIn(kernels) !== nameIn(ours) || !kernelData || !ourData) return false
  const said = valuesIn(kernelData)
  return [...valuesIn(ourData)].every(([type, value]) => said.get(type)?.equals(value))
}

const valuesIn = (bytes: Buffer): Map<number, Buffer> =>
  new Map([...attributesIn(bytes)].map(({ type, value }) => [type, value]))

const nameIn = (values: ReadonlyMap<number, Buffer>): string => textOf(values.get(EXPRESSION_NAME) ?? Buffer.alloc(0))

async function thingsIn(
  socket: NetlinkSocket,
  { family, name: tableName }: TableAt,
  { get, name, said }: { readonly get: number; readonly name: number; readonly said: readonly number[] },
): Promise<Thing[]> {
  const request = new MessageBuffer(1)
  request.beginNetfilter(nftType(get), NLM_F_DUMP, familyNumber[family])
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
