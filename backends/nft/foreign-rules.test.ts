import { execFileSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { fullSync } from '../../dataplane/testing/objects.js'
import { enterNamespace } from '../../linux/testing/index.js'
import { nftBackend } from './backend.js'
import type { NftOptions } from './options.js'
import { addresses, addressOf, labView, options } from './testing/cases.js'
import { Lab } from './testing/lab.js'
import { whyNoKernel } from './testing/namespace.js'

// Our rules beside traffic and rules of others: what passes through the node, and what other programs put into the kernel.

const nft = (...args: string[]): string => execFileSync('nft', args, { encoding: 'utf8' })

describe.skipIf(whyNoKernel() !== undefined)('beside others', () => {
  let lab: Lab
  let backend: ReturnType<typeof nftBackend> | undefined
  beforeAll(async () => {
    lab = await Lab.build()
    await enterNamespace(lab.namespace('node'))
  })
  afterEach(async () => {
    await backend?.cleanup()
    nft('flush', 'ruleset')
  })
  afterAll(() => lab.remove())

  async function serve(given: NftOptions = {}): Promise<void> {
    backend = nftBackend({ ...options, log: silentLog, ...given })
    await backend.setup({ requestFullSync: () => {} })
    await backend.sync(labView(), fullSync)
  }

  test('traffic through the node to the same port of another machine is left alone, even if all addresses serve node ports', async () => {
    await serve({ nodePortAddresses: ['all'] })
    for (const family of ['ip', 'ip6'] as const) {
      // Nobody listens there: the other machine itself refuses.
      expect(await lab.ask('client', { to: addressOf('podB1', family), port: 30080 })).toEqual(['rejected'])
      const [answer = ''] = await lab.ask('client', { to: addressOf('node', family), port: 30080 })
      expect(answer).toMatch(/^pod/)
    }
  })

  test('packets leave without the mark of masquerading', async () => {
    await serve()
    nft('add table ip watch')
    nft('add chain ip watch late { type filter hook postrouting priority 200; }')
    nft('add rule ip watch late ct status dnat meta mark & 0x4000 == 0x4000 counter')
    nft('add rule ip watch late ct status dnat meta mark & 0x4000 == 0 counter')
    const [answer = ''] = await lab.ask('client', { to: addressOf('web', 'ip'), port: 80 })
    const [, source] = answer.split(' ')
    expect([...addresses.node, ...addresses.otherNodeAddress]).toContain(source)
    const [marked, clear] = [...nft('list', 'chain', 'ip', 'watch', 'late').matchAll(/packets (\d+)/g)].map(packets)
    expect(marked).toBe(0)
    expect(clear).toBeGreaterThan(0)
  })

  test.each<[number, string | RegExp, string]>([
    [-101, 'rejected', 'a chain before ours decides first'],
    [-99, /^pod/, 'a chain after ours sees what is left'],
  ])('a foreign nat chain at priority %d: %s %s', async (priority, expected) => {
    await serve()
    nft('add table ip foreign')
    nft(`add chain ip foreign early { type nat hook prerouting priority ${priority}; }`)
    // Nobody listens there.
    nft(
      `add rule ip foreign early ip daddr ${addressOf('web', 'ip')} tcp dport 80 dnat to ${addressOf('podB1', 'ip')}:9`,
    )
    const [answer] = await lab.ask('client', { to: addressOf('web', 'ip'), port: 80 })
    expect(answer).toMatch(expected)
  })
})

const packets = ([, digits]: RegExpMatchArray): number => Number(digits)
