import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundle, programPath } from '../../linux/testing/bundle.js'
import { addressOf } from './testing/cases.js'
import { Lab } from './testing/lab.js'
import { whyNoKernel } from './testing/namespace.js'

// Clients notice nothing of what happens to the proxy, or to other services.

describe.skipIf(whyNoKernel() !== undefined)('connections and a request loop see no failure', () => {
  let lab: Lab
  const program = programPath('nft-proxy')
  let proxy: ChildProcess | undefined

  beforeAll(async () => {
    await bundle(new URL('testing/proxy.ts', import.meta.url), program)
    lab = await Lab.build()
  })
  afterAll(async () => {
    proxy?.kill('SIGKILL')
    await lab?.remove()
    rmSync(program, { force: true })
  })

  /** Starts the proxy and waits for a line of it. */
  async function start(bit: number, line: string): Promise<void> {
    const child = spawn('ip', ['netns', 'exec', lab.namespace('node'), process.execPath, program, String(bit)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    proxy = child
    for await (const said of createInterface({ input: child.stdout as NodeJS.ReadableStream }))
      if (said === line) return
    throw new Error('The proxy ended.')
  }

  async function kill(): Promise<void> {
    if (!proxy) return
    proxy.kill('SIGKILL')
    await once(proxy, 'exit')
  }

  test('through 1,000 changes to other services, kill -9, restart and upgrade', { timeout: 60_000 }, async () => {
    await start(20, 'synced')
    const client = lab.agent('client')
    const web = (family: 'ip' | 'ip6') => ({ protocol: 'TCP', ip: addressOf('web', family), port: 80 }) as const
    /** Over a connection that stays. */
    const askAgain = (family: 'ip' | 'ip6') =>
      client.call('probe', { to: web(family), timeoutMs: 3000, flow: `held ${family}` })
    const held = { ip: await askAgain('ip'), ip6: await askAgain('ip6') }
    for (const seen of Object.values(held)) expect(seen).toMatchObject({ outcome: 'reached' })
    await client.call('startLoop', web('ip'), 3000)
    await kill()
    await start(20, '1000')
    await kill()
    await start(14, 'synced')
    await kill()
    for (let times = 0; times < 3; times++) {
      // Killed at some moment of its start.
      const starting = start(14, 'synced').catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 120 + 60 * times))
      await kill()
      await starting
    }
    await start(14, 'synced')
    const { asked, failed } = await client.call('endLoop')
    expect(failed).toEqual([])
    expect(asked).toBeGreaterThan(50)
    expect({ ip: await askAgain('ip'), ip6: await askAgain('ip6') }).toEqual(held)
  })
})
