import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addressOf } from './testing/cases.js'
import { Lab } from './testing/lab.js'
import { whyNoKernel } from './testing/namespace.js'
import { ProxyProcess } from './testing/proxy-process.js'

// Clients notice nothing of what happens to the proxy, or to other services.

describe.skipIf(whyNoKernel() !== undefined)('connections and a request loop see no failure', () => {
  let lab: Lab
  let proxy: ProxyProcess

  beforeAll(async () => {
    lab = await Lab.build()
    proxy = await ProxyProcess.bundled(new URL('testing/proxy.ts', import.meta.url), lab.namespace('node'))
  })
  afterAll(async () => {
    await proxy?.remove()
    await lab?.remove()
  })

  test('through 1,000 changes to other services, kill -9, restart and upgrade', { timeout: 300_000 }, async () => {
    await proxy.start(['20'], 'synced')
    const client = lab.agent('client')
    const web = (family: 'ip' | 'ip6') => ({ protocol: 'TCP', ip: addressOf('web', family), port: 80 }) as const
    /** Over a connection that stays. */
    const askAgain = (family: 'ip' | 'ip6') =>
      client.call('probe', { to: web(family), timeoutMs: 3000, flow: `held ${family}` })
    const held = { ip: await askAgain('ip'), ip6: await askAgain('ip6') }
    for (const seen of Object.values(held)) expect(seen).toMatchObject({ outcome: 'reached' })
    await client.call('startLoop', web('ip'), 3000)
    await proxy.kill()
    await proxy.start(['20'], '1000')
    await proxy.kill()
    await proxy.start(['14'], 'synced')
    await proxy.kill()
    for (let times = 0; times < 3; times++) {
      // Killed at some moment of its start.
      const starting = proxy.start(['14'], 'synced').catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 120 + 60 * times))
      await proxy.kill()
      await starting
    }
    await proxy.start(['14'], 'synced')
    const { asked, failed } = await client.call('endLoop')
    expect(failed).toEqual([])
    expect(asked).toBeGreaterThan(50)
    expect({ ip: await askAgain('ip'), ip6: await askAgain('ip6') }).toEqual(held)
  })
})
