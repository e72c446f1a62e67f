import { spawnSync } from 'node:child_process'
import { KpngError, silentLog } from '@kpng/api'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { change, endpoint, fullSync, ips, udp } from '../../dataplane/testing/objects.js'
import { nftBackend } from './backend.js'
import { labView, options } from './testing/cases.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'

// A machine on which koffi does not load, and others that lack something.

vi.mock('@kpng/linux', async (original) => ({
  ...(await original<typeof import('@kpng/linux')>()),
  loadLibc: () =>
    Promise.reject(new KpngError('unsupported', 'The koffi library cannot be loaded: no build for this machine.')),
}))

const runner = { requestFullSync: () => {} }

describe.skipIf(whyNoKernel() !== undefined)('without koffi', () => {
  beforeAll(() => enterNewNamespace())
  afterEach(() => nftBackend().cleanup())

  test('auto takes the nft command, and says why', async () => {
    const warnings: unknown[] = []
    const log = { ...silentLog, warn: (message: string, fields: unknown) => warnings.push(message, fields) }
    const backend = nftBackend({ ...options, log })
    await backend.setup(runner)
    expect(warnings[0]).toBe('The nft command is run for each change, which is slower')
    const view = labView()
    await backend.sync(view, fullSync)
    const dns = {
      name: 'dns',
      ips: { clusterIps: ips('10.96.3.3') },
      ports: [udp(53)],
      endpoints: [endpoint('10.244.1.10')],
    }
    await backend.sync(view, change(view, 'dns', dns))
    await backend.sync(view, change(view, 'dns', { ...dns, endpoints: [] }))
    const { stdout } = spawnSync('nft', ['list', 'set', 'ip', 'kpng', 'cluster-ips'], { encoding: 'utf8' })
    expect(stdout).toContain('10.96.3.3')
    await backend.sync(view, fullSync)
    await backend.cleanup()
  })

  test('netlink is refused in a sentence', async () => {
    await expect(nftBackend({ writer: 'netlink' }).setup(runner)).rejects.toThrow(
      /netlink writer cannot be used.*koffi/,
    )
  })
})

describe.skipIf(whyNoKernel() !== undefined)('what is missing is named (70)', () => {
  test('no nft command', async () => {
    await expect(nftBackend({ nftCommand: '/nowhere/nft' }).setup(runner)).rejects.toThrow(
      /^\/nowhere\/nft is not installed or not in PATH\. Install it/,
    )
  })

  test('an nft command that does not work', async () => {
    await expect(nftBackend({ nftCommand: 'false' }).setup(runner)).rejects.toThrow(/CONFIG_NF_TABLES/)
  })
})
