import { execFileSync } from 'node:child_process'
import { whySkipped } from '@kpng/linux/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addresses, addressOf, type Case, cases, type Name } from '../nft/testing/cases.js'
import { Lab } from '../nft/testing/lab.js'
import { ProxyProcess } from '../nft/testing/proxy-process.js'

// Real packets through the rules of both flavours, in the lab of the nft backend and with its table of packet flows.

const whyNot = whySkipped('packets through iptables', 'iptables-nft', 'iptables-legacy')

/** While endpoints come and go. Set KPNG_CONNECTIONS for more. */
const connections = Number(process.env.KPNG_CONNECTIONS ?? 200)
const atOnce = 20

/** As in kube-proxy's iptables mode there are no rules for these: the packet leaves the node by its default route. */
const withoutRules = (row: Case): boolean =>
  row.shows.includes('(14)') || row.shows.includes('(9)') || row.shows.includes('(18)')

/** Which of the node's addresses a masqueraded packet gets is the kernel's choice. */
const nameOf = (address: string): string =>
  (addresses.otherNodeAddress as readonly string[]).includes(address) ? 'node' : nameIn(address)

const nameIn = (address: string): string =>
  (Object.keys(addresses) as Name[]).find((name) => (addresses[name] as readonly string[]).includes(address)) ?? address

describe.skipIf(whyNot !== undefined).each([
  ['nft', ''],
  ['legacy', 'large'],
] as const)('%s %s', (flavour, size) => {
  let lab: Lab
  let proxy: ProxyProcess

  beforeAll(async () => {
    lab = await Lab.build()
    proxy = await ProxyProcess.bundled(new URL('testing/proxy.ts', import.meta.url), lab.namespace('node'))
    await proxy.start([flavour, size], 'synced')
  })
  afterAll(async () => {
    await proxy?.remove()
    await lab?.remove()
  })

  describe.each(['ip', 'ip6'] as const)('%s', (family) => {
    test.each(cases.filter((row) => !withoutRules(row)))('$from → $to:$port $shows', async (row) => {
      const { from, to, port, protocol = 'tcp', expected } = row
      const isQuick = typeof expected === 'string'
      const answers = await lab.ask(from, {
        ...{ to: addressOf(to, family), port, protocol },
        ...{ count: isQuick ? 1 : 6, timeoutMs: expected === 'dropped' ? 300 : 3000 },
      })
      if (isQuick) {
        expect(answers).toEqual([expected === 'passed' ? 'rejected' : expected])
        return
      }
      for (const answer of answers) {
        const [endpoint = '', source = ''] = answer.split(' ')
        expect(expected.to).toContain(endpoint)
        if (expected.masqueraded === undefined) continue
        // A pod that is given itself is masqueraded as a hairpin, whatever the policy.
        expect(nameOf(source)).toBe(expected.masqueraded || endpoint === from ? 'node' : from)
      }
    })

    test('a client stays with its endpoint (37)', async () => {
      const to = addressOf('sticky', family)
      const [first] = await lab.ask('client', { to, port: 80 })
      const again = await lab.ask('client', { to, port: 80, count: 12 })
      expect(new Set([first, ...again]).size).toBe(1)
    })
  })

  test('no request fails while other services change, through kill -9 and restarts', { timeout: 300_000 }, async () => {
    const client = lab.agent('client')
    const web = { protocol: 'TCP', ip: addressOf('web', 'ip'), port: 80 } as const
    await client.call('startLoop', web, 3000)
    await proxy.kill()
    await proxy.start([flavour, size], '50')
    await proxy.kill()
    for (let times = 0; times < 3; times++) {
      // Killed at some moment of its start.
      const starting = proxy.start([flavour, size], 'synced').catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 150 + 80 * times))
      await proxy.kill()
      await starting
    }
    await proxy.start([flavour, size], 'synced')
    const { asked, failed } = await client.call('endLoop')
    expect(failed).toEqual([])
    expect(asked).toBeGreaterThan(50)
    const saved = execFileSync('ip', ['netns', 'exec', lab.namespace('node'), `iptables-${flavour}-save`], {
      encoding: 'utf8',
    })
    expect(saved).toContain('KPNG-OWNER-kpng')
  })

  test('no connection fails while endpoints of its Service come and go, through kill -9 and restarts', {
    timeout: 600_000,
  }, async () => {
    let isOver = false
    let restarts = 0
    const restart = async () => {
      for (; !isOver; restarts++) {
        await proxy.kill()
        await proxy.start([flavour, size, 'churn'], '10')
      }
    }
    const restarting = restart()
    const failed: string[] = []
    let asked = 0
    while (asked < connections || restarts === 0) {
      for (const [from, family] of [
        ['client', 'ip'],
        ['podA2', 'ip6'],
      ] as const) {
        const to = addressOf('web', family)
        const answers = await lab.ask(from, { to, port: 80, count: atOnce, timeoutMs: 10_000 })
        failed.push(...answers.filter((answer) => !answer.startsWith('pod')))
        asked += answers.length
      }
    }
    isOver = true
    await restarting
    expect(failed).toEqual([])
    if (process.env.KPNG_CONNECTIONS) console.log(`${flavour}: ${asked} connections, ${restarts} restarts, none failed`)
  })
})
