import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addressOf } from './testing/cases.js'
import { Lab } from './testing/lab.js'
import { whyNoKernel } from './testing/namespace.js'

// Clients notice nothing of what happens to the proxy, or to other services.

describe.skipIf(whyNoKernel() !== undefined)('connections and a request loop see no failure', () => {
  const lab = new Lab()
  // Beside koffi, which the program loads.
  const folder = fileURLToPath(new URL('node_modules/.kpng-test/', import.meta.url))
  const program = `${folder}proxy-${process.pid}.mjs`
  let proxy: ChildProcess | undefined

  beforeAll(async () => {
    mkdirSync(folder, { recursive: true })
    await build({
      entryPoints: [fileURLToPath(new URL('testing/proxy.ts', import.meta.url))],
      ...{ outfile: program, bundle: true, platform: 'node', format: 'esm', target: 'node20', logLevel: 'error' },
      ...{ conditions: ['kpng-source'], external: ['koffi'] },
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)" },
    })
    await lab.build()
  })
  afterAll(() => {
    proxy?.kill('SIGKILL')
    lab.remove()
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
    for (const family of ['ip', 'ip6'] as const)
      await client.do('hold', { id: family, to: addressOf('web', family), port: 80 })
    await client.do('startLoop', { to: addressOf('web', 'ip'), port: 80, timeoutMs: 3000 })
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
    const { sent, failed } = await client.do('endLoop')
    expect(failed).toEqual([])
    expect(sent).toBeGreaterThan(50)
    for (const family of ['ip', 'ip6'] as const) {
      expect((await client.do('echo', { id: family, timeoutMs: 3000 })).answer).toBe('ping')
    }
  })
})
