import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { loadLibc } from '../libc.js'
import { MessageBuffer } from '../netlink/buffer.js'
import { NETLINK_NETFILTER, NLM_F_DUMP } from '../netlink/constants.js'
import { dump } from '../netlink/dump.js'
import { attributesIn, attributesOf } from '../netlink/messages.js'
import { NetlinkSocket } from '../netlink/socket.js'
import { nftMessage } from '../nftables/constants.js'
import type { Elements } from '../nftables/element.js'
import { familyNumber, type TableFamily } from '../nftables/family.js'
import type { Ruleset } from '../nftables/ruleset.js'
import { nftType } from '../nftables/socket.js'
import { Tables } from '../nftables/tables.js'
import { rulesetText } from '../nftables/text.js'
import { enterNewNamespace } from './namespace.js'

// Rules are written twice, side by side: as text and as expressions. Both go into the kernel, each into a namespace of its own, and the
// kernel must hold the same.

/** What differs between two tables that are the same: handles, use counts, and where the kernel has a set in its memory. */
const lists = [
  { what: 'set', get: nftMessage.GETSET, ignored: [16, 19, 20] },
  { what: 'chain', get: nftMessage.GETCHAIN, ignored: [2, 6] },
  { what: 'rule', get: nftMessage.GETRULE, ignored: [3, 6] },
] as const

/** The set that seals a table is made after it, by netlink only. */
const isSeal = /^set .*=rules-[0-9a-f]+ |"rules-[0-9a-f]+"/

/** Everything that the kernel tells about a family, as text: `payload 1=… 2=…` for each expression of a rule. */
async function heldBy(family: TableFamily): Promise<string> {
  const socket = new NetlinkSocket(await loadLibc(), NETLINK_NETFILTER)
  const found: string[] = []
  for (const { what, get, ignored } of lists) {
    const request = new MessageBuffer(1)
    request.beginNetfilter(nftType(get), NLM_F_DUMP, familyNumber[family])
    request.end()
    await dump(socket, request.bytes, (message) => {
      const attributes = [...attributesOf(message)].filter(({ type }) => !ignored.some((each) => each === type))
      const texts = attributes.map(({ type, value }) =>
        what === 'rule' && type === 4 ? expressionTexts(value).join('\n  ') : `${type}=${readable(value)}`,
      )
      const line = `${what} ${texts.join(' ')}`
      if (!isSeal.test(line)) found.push(line)
    })
  }
  socket.close()
  return found.join('\n')
}

const expressionTexts = (list: Buffer): string[] =>
  [...attributesIn(list)].map(({ value }) => {
    const [name, data] = [...attributesIn(value)]
    const attributes = data ? [...attributesIn(data.value)] : []
    const texts = attributes.map((each) => `${each.type}=${readable(each.value)}`)
    return [name ? readable(name.value) : '', ...texts].join(' ')
  })

const readable = (value: Buffer): string => {
  const text = value.toString('latin1')
  return /^[a-z][a-z0-9-]{2,}\0$/.test(text) ? text.slice(0, -1) : value.toString('hex')
}

/** As nft lists it, without handles. */
const listed = (): string => {
  const { nftables } = JSON.parse(nft(['-j', 'list', 'ruleset'])) as { nftables: unknown[] }
  return nftables
    .map((item) => JSON.stringify(item, (key, value) => (key === 'handle' ? undefined : value)))
    .filter((line) => !isSeal.test(line))
    .join('\n')
}

function nft(args: readonly string[], input?: string): string {
  const { status, stdout, stderr } = spawnSync('nft', args, { encoding: 'utf8', input })
  if (status !== 0) throw new Error(`nft ${args.join(' ')}: ${stderr}`)
  return stdout
}

interface Held {
  readonly ip: string
  readonly ip6: string
  readonly listed: string
}

const held = async (): Promise<Held> => ({ ip: await heldBy('ip'), ip6: await heldBy('ip6'), listed: listed() })

/** What the kernel holds of a ruleset that the nft program wrote, and of the same by netlink. Leaves this thread in a new namespace. */
export async function heldOfBoth(
  families: readonly TableFamily[],
  ruleset: Ruleset,
  elements: Elements = new Map(),
): Promise<{ ofText: Held; ofNetlink: Held }> {
  await enterNewNamespace()
  nft(['-f', '-'], rulesetText(families, ruleset, elements))
  const ofText = await held()
  await enterNewNamespace()
  const tables = await Tables.open({ libc: await loadLibc(), families, ruleset, log: silentLog })
  await tables.commit({ remove: new Map(), add: elements })
  tables.close()
  return { ofText, ofNetlink: await held() }
}
