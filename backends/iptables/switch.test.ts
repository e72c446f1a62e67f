import { execFileSync } from 'node:child_process'
import { whySkipped } from '@kpng/linux/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addressOf } from '../nft/testing/cases.js'
import { Lab } from '../nft/testing/lab.js'
import { ProxyProcess } from '../nft/testing/proxy-process.js'

// From one backend to the other on a running node, as docs/iptables.md describes it: the other one starts, and when its rules are in
// place, the rules of the first are removed.

const whyNot = whySkipped('switching between backends', 'nft', 'iptables-nft', 'iptables-legacy')

/** For each step. Set KPNG_CONNECTIONS for more. */
const connections = Number(process.env.KPNG_CONNECTIONS ?? 200) / 8
const atOnce = 20

describe.skipIf(whyNot !== undefined)('nft → iptables → nft', () => {
  let lab: Lab
  let nft: ProxyProcess
  let iptables: ProxyProcess

  beforeAll(async () => {
    lab = await Lab.build()
    const node = lab.namespace('node')
    nft = await ProxyProcess.bundled(new URL('../nft/testing/proxy.ts', import.meta.url), node)
    iptables = await ProxyProcess.bundled(new URL('testing/proxy.ts', import.meta.url), node)
  })
  afterAll(async () => {
    await nft?.remove()
    await iptables?.remove()
    await lab?.remove()
  })

  const inNode = (...command: string[]) =>
    execFileSync('ip', ['netns', 'exec', lab.namespace('node'), ...command], { encoding: 'utf8' })

  test.each(['nft', 'legacy'])(
    '%s: no connection fails, and one that is open stays',
    { timeout: 300_000 },
    async (flavour) => {
      const client = lab.agent('client')
      const web = (family: 'ip' | 'ip6') => ({ protocol: 'TCP', ip: addressOf('web', family), port: 80 }) as const
      const askAgain = () => client.call('probe', { to: web('ip'), timeoutMs: 10_000, flow: `held ${flavour}` })
      let asked = 0
      /** New connections from outside and from a pod. */
      const connect = async () => {
        for (let done = 0; done < connections; done += atOnce) {
          for (const [from, family] of [
            ['client', 'ip'],
            ['podA1', 'ip6'],
          ] as const) {
            const answers = await lab.ask(from, { to: web(family).ip, port: 80, count: atOnce / 2, timeoutMs: 10_000 })
            expect(answers.filter((answer) => !answer.startsWith('pod'))).toEqual([])
            asked += answers.length
          }
        }
      }
      await nft.start(['14'], 'synced')
      const held = await askAgain()
      expect(held).toMatchObject({ outcome: 'reached' })
      // All the time, also while rules come and go.
      await client.call('startLoop', web('ip'), 10_000)
      await connect()
      for (const [from, to, args] of [
        [nft, iptables, [flavour]],
        [iptables, nft, ['14']],
      ] as const) {
        await to.start(args, 'synced')
        await connect()
        await from.kill()
        await from.run('cleanup')
        await connect()
        // A restart, while other Services change.
        await to.kill()
        await to.start(args, 'synced')
        await connect()
      }
      const loop = await client.call('endLoop')
      expect(loop.failed).toEqual([])
      expect(await askAgain()).toEqual(held)
      expect(asked).toBeGreaterThanOrEqual(connections * 7)
      expect(inNode(`iptables-${flavour}-save`)).not.toMatch(/KUBE-|KPNG-/)
      expect(inNode('nft', 'list', 'tables')).toContain('kpng')
      await nft.kill()
      await nft.run('cleanup')
      if (process.env.KPNG_CONNECTIONS)
        console.log(`${flavour}: ${asked} connections and ${loop.asked} in the loop, none failed`)
    },
  )
})
