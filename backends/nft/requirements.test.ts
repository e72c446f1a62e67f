import { KpngError } from '@kpng/api'
import type { Libc } from '@kpng/linux'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { fullSync } from '../../dataplane/testing/objects.js'
import { nftBackend } from './backend.js'
import type { NftOptions } from './options.js'
import { whyUnusable } from './requirements.js'
import { labView, options } from './testing/cases.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'
import { nft } from './testing/running.js'

// Machines that lack something.

const machine = vi.hoisted(() => ({ hasKoffi: true, lacks: '' }))

vi.mock('@kpng/linux', async (original) => {
  const linux = await original<typeof import('@kpng/linux')>()
  const missing = new KpngError('unsupported', 'The koffi library cannot be loaded: no build for this machine.')
  /** A kernel without an expression: it is asked for one that does not exist. */
  const lacking = (bytes: Uint8Array): Buffer => {
    const nothing = 'x'.repeat(machine.lacks.length)
    return Buffer.from(Buffer.from(bytes).toString('latin1').replaceAll(`${machine.lacks}\0`, `${nothing}\0`), 'latin1')
  }
  const loadLibc = async () => {
    const libc = await linux.loadLibc()
    if (!machine.lacks) return libc
    const send: Libc['send'] = (fd, bytes, ...rest) => libc.send(fd, lacking(bytes), ...rest)
    const sendAsync: Libc['sendAsync'] = (fd, bytes, ...rest) => libc.sendAsync(fd, lacking(bytes), ...rest)
    return { ...libc, send, sendAsync }
  }
  return { ...linux, loadLibc: () => (machine.hasKoffi ? loadLibc() : Promise.reject(missing)) }
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
  afterEach(() => {
    machine.hasKoffi = true
    machine.lacks = ''
  })

  test('no koffi', async () => {
    machine.hasKoffi = false
    await expect(setUp({})).rejects.toThrow('The koffi library cannot be loaded: no build for this machine.')
  })

  test.each([
    ['nat', 'The kernel lacks CONFIG_NFT_NAT (family ip). Load its module, or use another kernel.'],
    ['masq', 'The kernel lacks CONFIG_NFT_MASQ (family ip).'],
    ['reject', 'The kernel lacks CONFIG_NFT_REJECT (family ip).'],
    ['numgen', 'The kernel lacks CONFIG_NFT_NUMGEN (family ip).'],
    ['fib', 'The kernel lacks CONFIG_NFT_FIB_IPV4 (family ip).'],
    [
      'payload',
      "The kernel does not accept kpng's rules for family ip: ENOENT. Update the kernel, or use another backend.",
    ],
  ])('no %s', async (lacks, sentence) => {
    machine.lacks = lacks
    await expect(setUp({})).rejects.toThrow(sentence)
    expect(await whyUnusable()).toContain(sentence)
    expect(nft('list', 'tables')).toBe('')
  })

  test('nothing is missing', async () => {
    expect(await whyUnusable()).toBeUndefined()
    expect(nft('list', 'tables')).toBe('')
  })

  test('the nft program is not needed', async () => {
    const path = process.env.PATH
    process.env.PATH = '/nowhere'
    const backend = nftBackend(options)
    try {
      await backend.setup(runner)
      await backend.sync(labView(), fullSync)
    } finally {
      await backend.close()
      process.env.PATH = path
    }
    expect(nft('list', 'map', 'ip', 'kpng', 'endpoints')).toContain(' . 8080')
    process.env.PATH = '/nowhere'
    await backend.cleanup().finally(() => {
      process.env.PATH = path
    })
    expect(nft('list', 'tables')).toBe('')
  })
})
