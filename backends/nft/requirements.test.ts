import { KpngError } from '@kpng/api'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { nftBackend } from './backend.js'
import type { NftOptions } from './options.js'
import { options } from './testing/cases.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'

// Machines that lack something.

const koffi = vi.hoisted(() => ({ isMissing: false }))

vi.mock('@kpng/linux', async (original) => {
  const linux = await original<typeof import('@kpng/linux')>()
  const missing = new KpngError('unsupported', 'The koffi library cannot be loaded: no build for this machine.')
  return { ...linux, loadLibc: () => (koffi.isMissing ? Promise.reject(missing) : linux.loadLibc()) }
})

const runner = { requestFullSync: () => {} }

async function setUp(given: NftOptions): Promise<void> {
  const backend = nftBackend({ ...options, ...given })
  try {
    await backend.setup(runner)
  } finally {
    await backend.close()
  }
}

describe.skipIf(whyNoKernel() !== undefined)('what is missing is named (70)', () => {
  beforeAll(() => enterNewNamespace())

  test('no koffi', async () => {
    koffi.isMissing = true
    await expect(setUp({})).rejects.toThrow('The koffi library cannot be loaded: no build for this machine.')
    koffi.isMissing = false
  })

  test('no nft command', async () => {
    await expect(setUp({ nftCommand: '/nowhere/nft' })).rejects.toThrow(
      /^\/nowhere\/nft is not installed or not in PATH\. Install it/,
    )
  })

  test('an nft command that does not work', async () => {
    await expect(setUp({ nftCommand: 'false' })).rejects.toThrow(/CONFIG_NF_TABLES/)
  })
})
