import { silentLog } from '@kpng/api'
import { familyOfTable, type TableFamily } from '@kpng/linux/nftables'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { change, endpoint, fullSync, ips, type TestService, tcp, udp } from '../../dataplane/testing/objects.js'
import { nftBackend } from './backend.js'
import { addresses, addressOf, type Case, cases, labView, type Name, options } from './testing/cases.js'
import { type AskRequest, Lab, type Place } from './testing/lab.js'
import { enterNamespace, whyNoKernel } from './testing/namespace.js'

// The packet flows of packet-flow.test.ts, on the kernel, with real packets.

const runner = { requestFullSync: () => {} }

/** Which of the node's addresses a masqueraded packet gets is the kernel's choice. */
const nameOf = (address: string): string =>
  (addresses.otherNodeAddress as readonly string[]).includes(address) ? 'node' : nameIn(address)

const nameIn = (address: string): string =>
  (Object.keys(addresses) as Name[]).find((name) => (addresses[name] as readonly string[]).includes(address)) ?? address

describe.skipIf(whyNoKernel() !== undefined)('packets in the kernel', () => {
  let lab: Lab
  let backend: ReturnType<typeof nftBackend>
  const view = labView()

  beforeAll(async () => {
    lab = await Lab.build()
    await enterNamespace(lab.namespace('node'))
    backend = nftBackend({ ...options, log: silentLog })
    await backend.setup(runner)
    await backend.sync(view, fullSync)
  })
  afterAll(() => lab?.remove())

  async function run({ from, to, port, protocol = 'tcp', expected }: Case, family: TableFamily): Promise<void> {
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

  /** Clients are released and flows deleted when a sync is through, or soon after. */
  const soonAnswers = (from: Place, request: AskRequest, expected: readonly string[]): Promise<void> =>
    vi.waitFor(
      async () => {
        const [answer = ''] = await lab.ask(from, request)
        expect(expected).toContain(answer.split(' ')[0])
      },
      { timeout: 90_000 },
    )

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
      const others = (['podA1', 'podA2', 'podB1'] as const).filter((name) => name !== endpoint)
      await soonAnswers('client', { to, port: 80 }, others)
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
      const deleted = { IPv4: 0, IPv6: 0 }
      if (backend.observations) {
        backend.observations.listener = {
          staleFlows: (each, _, flows) => {
            deleted[each] += flows
          },
        }
      }
      await backend.sync(view, change(view, 'web', { ...web.service, name: 'web', endpoints: rest }))
      await vi.waitFor(() => expect(deleted[familyOfTable[family]]).toBeGreaterThanOrEqual(1))
      const others = ['podA1', 'podB1'].filter((name) => name !== endpoint)
      await soonAnswers('podA2', request, others)
      await backend.sync(view, change(view, 'web', { ...web.service, name: 'web', endpoints: [] }))
      await soonAnswers('podA2', request, ['rejected'])
      await backend.sync(view, change(view, 'web', { ...web.service, name: 'web', endpoints: web.endpoints }))
      await soonAnswers('podA2', request, ['podA1', 'podB1'])
    })

    test('a UDP client that sends since before there were endpoints is answered when several come at once (53)', async () => {
      const late: TestService = {
        name: 'late',
        ips: { clusterIps: ips('10.96.0.200', 'fd00:96::200') },
        ports: [udp(53, { nodePort: 30200 })],
        endpoints: ['podA1', 'podB1'].map((name) => endpoint(addresses[name as Name].join(' '))),
      }
      const request = { to: addressOf('node', family), port: 30200, protocol: 'udp', flow: `late-${family}` }
      for (let sent = 0; sent < 2; sent++) await lab.ask('client', { ...request, timeoutMs: 200 })
      await backend.sync(view, change(view, 'late', late))
      await soonAnswers('client', request, ['podA1', 'podB1'])
      await backend.sync(view, change(view, 'late', undefined))
    })

    test('a client that is remembered elsewhere comes to this node when the policy becomes Local (33, 39)', async () => {
      const here = endpoint(addresses.podA1.join(' '), { local: true })
      const elsewhere = (init?: Parameters<typeof endpoint>[1]) => endpoint(addresses.podB1.join(' '), init)
      const exposed = (init: Partial<TestService>): TestService => ({
        name: 'exposed-sticky',
        sessionAffinity: { case: 'clientIp', value: { timeoutSeconds: 600 } },
        ips: { clusterIps: ips('10.96.0.201', 'fd00:96::201'), loadBalancerIps: ips('192.0.2.201', '2001:db8:2::201') },
        ports: [tcp(80, { nodePort: 30201 })],
        ...init,
      })
      const sync = (init: Partial<TestService>) => backend.sync(view, change(view, 'exposed-sticky', exposed(init)))
      const places = [
        { to: family === 'ip' ? '192.0.2.201' : '2001:db8:2::201', port: 80 },
        { to: addressOf('node', family), port: 30201 },
      ]
      await sync({ endpoints: [elsewhere()] })
      for (const place of places) expect((await lab.ask('client', place))[0]).toMatch(/^podB1 /)
      await sync({ endpoints: [here, elsewhere()] })
      await sync({ externalTrafficToLocal: true, endpoints: [here, elsewhere({ scopes: ['internal', 'cluster'] })] })
      for (const place of places) {
        await soonAnswers('client', place, ['podA1'])
        for (const answer of await lab.ask('client', { ...place, count: 4 })) {
          expect(answer).toBe(`podA1 ${addressOf('client', family)}`)
        }
      }
      await backend.sync(view, change(view, 'exposed-sticky', undefined))
    })
  })
})
