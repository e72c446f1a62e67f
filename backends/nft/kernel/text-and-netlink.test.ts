import { spawnSync } from 'node:child_process'
import {
  attributesIn,
  attributesOf,
  dump,
  loadLibc,
  MessageBuffer,
  NETLINK_NETFILTER,
  NetlinkSocket,
  NLM_F_DUMP,
} from '@kpng/linux'
import { beforeEach, describe, expect, test } from 'vitest'
import { type NftOptions, settingsOf } from '../options.js'
import { type TableFamily, tableFamilies } from '../rules/family.js'
import { rememberChain } from '../rules/names.js'
import { rememberRules } from '../rules/skeleton.js'
import { skeletonText } from '../rules/skeleton-text.js'
import { enterNewNamespace, whyNoKernel } from '../testing/namespace.js'
import { nft } from '../testing/running.js'
import { nftMessage } from './constants.js'
import { NetlinkWriter } from './netlink-writer.js'
import { nftType, protocolFamily } from './set-elements.js'

// The rules are written twice, side by side: as text and as expressions. Both go into the kernel, each into a namespace of its own, and the
// kernel must hold the same.

/** What differs between two tables that are the same: handles, use counts, and where the kernel has a set in its memory. */
const lists = [
  { what: 'set', get: nftMessage.GETSET, ignored: [16, 19, 20] },
  { what: 'chain', get: nftMessage.GETCHAIN, ignored: [2, 6] },
  { what: 'rule', get: nftMessage.GETRULE, ignored: [3, 6] },
] as const

/** Everything that the kernel tells about a family, as text: `payload 1=… 2=…` for each expression of a rule. */
async function heldBy(family: TableFamily): Promise<string> {
  const socket = new NetlinkSocket(await loadLibc(), NETLINK_NETFILTER)
  const found: string[] = []
  for (const { what, get, ignored } of lists) {
    const request = new MessageBuffer(1)
    request.beginNetfilter(nftType(get), NLM_F_DUMP, protocolFamily(family))
    request.end()
    await dump(socket, request.bytes, (message) => {
      const attributes = [...attributesOf(message)].filter(({ type }) => !ignored.some((each) => each === type))
      const texts = attributes.map(({ type, value }) =>
        what === 'rule' && type === 4 ? expressionTexts(value).join('\n  ') : `${type}=${readable(value)}`,
      )
      found.push(`${what} ${texts.join(' ')}`)
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
  const { nftables } = JSON.parse(nft('-j', 'list', 'ruleset')) as { nftables: unknown[] }
  return nftables.map((item) => JSON.stringify(item, (key, value) => (key === 'handle' ? undefined : value))).join('\n')
}

const cases: readonly (readonly [string, NftOptions])[] = [
  ['the default', {}],
  ['counters, another bit, everything masqueraded', { counters: true, masqueradeBit: 31, masqueradeAll: true }],
  ['a bridge', { detectLocal: { mode: 'BridgeInterface', name: 'cni0' } }],
  ['interfaces with a prefix', { detectLocal: { mode: 'InterfaceNamePrefix', prefix: 'cali' }, dropInvalid: false }],
]

describe.skipIf(whyNoKernel() !== undefined)('the kernel holds the same of text and of netlink messages', () => {
  beforeEach(() => enterNewNamespace())

  async function both(byText: string, byNetlink: (writer: NetlinkWriter) => Promise<void>, given: NftOptions = {}) {
    const hold = async () => ({ ip: await heldBy('ip'), ip6: await heldBy('ip6'), listed: listed() })
    const { status, stderr } = spawnSync('nft', ['-f', '-'], { input: byText, encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const ofText = await hold()
    await enterNewNamespace()
    const writer = new NetlinkWriter(await loadLibc(), settingsOf(given))
    await byNetlink(writer)
    writer.close()
    return { ofText, ofNetlink: await hold() }
  }

  test.each(cases)('%s', async (_, given) => {
    const text = tableFamilies.map((family) => skeletonText(family, settingsOf(given))).join('')
    const { ofText, ofNetlink } = await both(text, (writer) => writer.make(tableFamilies), given)
    expect(ofNetlink).toEqual(ofText)
    for (const each of Object.values(ofNetlink)) expect(each.split('\n').length).toBeGreaterThan(400)
  })

  // nft before 1.0.7 cannot write the rules for IPv6: their key is too long for it.
  test('a chain that remembers clients', async () => {
    const [table, chain] = [skeletonText('ip', settingsOf()), rememberChain(600)]
    const rules = rememberRules('ip', 600).map(({ text }) => `add rule ip kpng ${chain} ${text}\n`)
    const remembering = `${table}add chain ip kpng ${chain}\n${rules.join('')}`
    const { ofText, ofNetlink } = await both(remembering, async (writer) => {
      await writer.make(['ip'])
      await writer.commit({ remove: new Map(), add: new Map() }, [`ip ${chain}`])
    })
    expect(ofNetlink).toEqual(ofText)
  })
})
