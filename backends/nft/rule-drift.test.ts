import { loadLibc, NETLINK_NETFILTER, NetlinkSocket } from '@kpng/linux'
import { readNftGeneration } from '@kpng/linux/nftables'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { fullSync } from '../../dataplane/testing/objects.js'
import { labView } from './testing/cases.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'
import { nft, RunningBackends } from './testing/running.js'

// Somebody changes what our tables are made of, not what is in their sets: those are in kernel-state.test.ts.

const handleOf = (chain: string, rule: string): string =>
  new RegExp(`${rule}.* # handle (\\d+)`).exec(nft('-a', 'list', 'chain', 'ip', 'kpng', chain))?.[1] ?? ''

const intrusions: readonly (readonly [string, () => void])[] = [
  [
    'replaces a rule by another one',
    () => {
      const handle = handleOf('refuse', 'reject with tcp reset')
      nft('replace', 'rule', 'ip', 'kpng', 'refuse', 'handle', handle, 'meta', 'l4proto', 'tcp', 'accept')
    },
  ],
  ['sets the policy of a base chain to drop', () => nft('chain ip kpng dnat-prerouting { policy drop; }')],
  ['puts a base chain into the table', () => nft('add chain ip kpng foreign { type filter hook input priority 0; }')],
  ['puts a set into the table', () => nft('add set ip kpng foreign { type ipv4_addr; }')],
  ['lets the table sleep', () => nft('add table ip kpng { flags dormant; }')],
  ['empties a chain that remembers clients', () => nft('flush chain ip kpng remember-600')],
  [
    'exchanges two rules of a chain',
    () => {
      const rule = 'ip daddr @local-addresses'
      nft('delete', 'rule', 'ip', 'kpng', 'services', 'handle', handleOf('services', rule))
      nft(`insert rule ip kpng services ${rule} goto to-local-address`)
    },
  ],
]

const rules = (): string => nft('-s', '-t', 'list', 'table', 'ip', 'kpng')

describe.skipIf(whyNoKernel() !== undefined)('somebody changes the rules', () => {
  const backends = new RunningBackends()
  beforeAll(() => enterNewNamespace())
  afterEach(() => backends.end())

  // The rules of IPv6 are like those of IPv4.
  const start = () => backends.start({ ipv6: false })

  test.each(intrusions)('and %s: noticed and repaired (66)', async (_, intrude) => {
    const view = labView()
    const backend = await start()
    await backend.sync(view, fullSync)
    const before = rules()
    intrude()
    expect(rules()).not.toBe(before)
    await vi.waitFor(() => expect(backends.reasons.length).toBeGreaterThan(0), { timeout: 90_000 })
    await backend.sync(view, fullSync)
    expect(rules()).toBe(before)
  })

  test.each(intrusions)('while kpng is down, and %s: repaired by the next start (66, 81)', async (_, intrude) => {
    const view = labView()
    await (await start()).sync(view, fullSync)
    const before = rules()
    intrude()
    await (await start()).sync(view, fullSync)
    expect(rules()).toBe(before)
  })

  test('a start after nothing happened writes nothing, in both families and with sets that count (81)', async () => {
    const view = labView()
    await (await backends.start({ counters: true })).sync(view, fullSync)
    const socket = new NetlinkSocket(await loadLibc(), NETLINK_NETFILTER)
    const generation = await readNftGeneration(socket)
    await (await backends.start({ counters: true })).sync(view, fullSync)
    expect(await readNftGeneration(socket)).toBe(generation)
    socket.close()
  })
})
