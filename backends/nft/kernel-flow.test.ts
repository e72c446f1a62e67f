import { silentLog } from '@kpng/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Family } from './address.js'
import { nftBackend } from './backend.js'
import { addresses, addressOf, type Case, cases, labView, type Name, options } from './testing/cases.js'
import { Lab } from './testing/lab.js'
import { enterNamespace, whyNoKernel } from './testing/namespace.js'
import { change, fullSync } from './testing/objects.js'

// The packet flows of packet-flow.test.ts, on the kernel, with real packets.

const runner = { requestFullSync: () => {} }

/** Which of the node's addresses a masqueraded packet gets is the kernel's choice. */
const nameOf = (address: string): string =>
  (addresses.otherNodeAddress as readonly string[]).includes(address) ? 'node' : nameIn(address)

const nameIn = (address: string): string =>
  (Object.keys(addresses) as Name[]).find((name) => (addresses[name] as readonly string[]).includes(address)) ?? address

describe.skipIf(whyNoKernel() !== undefined)('packets in the kernel', () => {
  const lab = new Lab()
  let backend: ReturnType<typeof nftBackend>
  const view = labView()

  beforeAll(async () => {
    await lab.build()
    enterNamespace(lab.namespace('node'))
    backend = nftBackend({ ...options, log: silentLog, writer: 'netlink' })
    await backend.setup(runner)
    await backend.sync(view, fullSync)
  })
  afterAll(() => lab.remove())

  async function run({ from, to, port, protocol = 'tcp', expected }: Case, family: Family): Promise<void> {
    const quick = typeof expected === 'string'
    const answers = await lab.ask(from, {
      ...{ to: addressOf(to, family), port, protocol },
      ...{ count: quick ? 1 : 6, timeoutMs: expected === 'dropped' ? 300 : 2000 },
    })
    if (expected === 'passed') {
      expect(answers).toEqual(['rejected'])
      return
    }
    if (typeof expected === 'string') {
      expect(answers).toEqual([expected])
      return
    }
    for (const answer of answers) {
      const [endpoint = '', source = ''] = answer.split(' ')
      expect(expected.to).toContain(endpoint)
      if (expected.masqueraded === undefined) continue
      // A pod that is given itself is masqueraded as a hairpin, whatever the policy.
      const isHairpin = endpoint === from
      expect(nameOf(source)).toBe(expected.masqueraded || isHairpin ? 'node' : from)
    }
  }

  describe.each(['ip', 'ip6'] as const)('%s', (family) => {
    test.each(cases)('$from → $to:$port $shows', (row) => run(row, family))

    test('a client stays with its endpoint, and is released when that goes (37, 39)', async () => {
      const to = addressOf('sticky', family)
      const first = await lab.ask('client', { to, port: 80, count: 1 })
      const again = await lab.ask('client', { to, port: 80, count: 12 })
      expect(new Set([...first, ...again]).size).toBe(1)
      const endpoint = first[0]?.split(' ')[0] as Name
      const sticky = view.services.get('default/sticky')
      if (!sticky) throw new Error('The lab has no sticky service.')
      const rest = sticky.endpoints.filter(({ ips }) => !ips?.v4.includes(addresses[endpoint][0]))
      await backend.sync(view, change(view, 'sticky', { ...sticky.service, name: 'sticky', endpoints: rest }))
      const after = await lab.ask('client', { to, port: 80, count: 12 })
      expect(new Set(after.map((answer) => answer.split(' ')[0])).size).toBe(1)
      expect(after[0]?.split(' ')[0]).not.toBe(endpoint)
      await backend.sync(
        view,
        change(view, 'sticky', { ...sticky.service, name: 'sticky', endpoints: sticky.endpoints }),
      )
    })

    test('a UDP client that keeps its port moves when its endpoint goes, and is refused when all went (53, 54)', async () => {
      const web = view.services.get('default/web')
      if (!web) throw new Error('The lab has no web service.')
      const flow = `web-${family}`
      const request = { to: addressOf('web', family), port: 53, protocol: 'udp', flow, timeoutMs: 1000 }
      const [first = ''] = await lab.ask('podA2', request)
      const endpoint = first.split(' ')[0] as Name
      expect(await lab.ask('podA2', request)).toEqual([first])
      const rest = web.endpoints.filter(({ ips }) => !ips?.v4.includes(addresses[endpoint][0]))
      const deleted = { ip: 0, ip6: 0 }
      backend.onStaleFlows = (family, _, flows) => {
        deleted[family] += flows
      }
      await backend.sync(view, change(view, 'web', { ...web.service, name: 'web', endpoints: rest }))
      expect(deleted[family]).toBeGreaterThanOrEqual(1)
      const [moved = ''] = await lab.ask('podA2', request)
      expect(['podA1', 'podB1'].filter((name) => name !== endpoint)).toContain(moved.split(' ')[0])
      await backend.sync(view, change(view, 'web', { ...web.service, name: 'web', endpoints: [] }))
      expect(await lab.ask('podA2', request)).toEqual(['rejected'])
      await backend.sync(view, change(view, 'web', { ...web.service, name: 'web', endpoints: web.endpoints }))
      const [back = ''] = await lab.ask('podA2', request)
      expect(['podA1', 'podB1']).toContain(back.split(' ')[0])
    })
  })
})
