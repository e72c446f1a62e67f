import { readdirSync, readlinkSync } from 'node:fs'
import { silentLog } from '@kpng/api'
import { beforeAll, describe, expect, test } from 'vitest'
import { fullSync } from '../../dataplane/testing/objects.js'
import { nftBackend } from './backend.js'
import { labView, options } from './testing/cases.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'
import { nft } from './testing/running.js'

const openSockets = () =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:')
    } catch {
      return false
    }
  }).length

describe.skipIf(whyNoKernel() !== undefined)('a run that ends', () => {
  beforeAll(() => enterNewNamespace())

  test('leaves the rules and no open sockets', async () => {
    const before = openSockets()
    for (let run = 1; run <= 3; run++) {
      const backend = nftBackend({ ...options, log: silentLog })
      await backend.setup({ requestFullSync: () => {} })
      await backend.sync(labView(), fullSync)
      expect(openSockets()).toBeGreaterThan(before)
      await backend.close()
      await expect.poll(openSockets, { timeout: 90_000 }).toBe(before)
    }
    expect(nft('list', 'set', 'ip', 'kpng', 'cluster-ips')).toContain('elements = {')
    await nftBackend().cleanup()
    expect(nft('list', 'tables')).toBe('')
  })
  test('is known to the next one by its rules, until they are cleaned up', async () => {
    const started = async () => {
      const backend = nftBackend({ ...options, log: silentLog })
      await backend.setup({ requestFullSync: () => {} })
      return backend
    }
    const first = await started()
    expect(await first.hasRules?.()).toBe(false)
    await first.sync(labView(), fullSync)
    await first.close()
    const second = await started()
    expect(await second.hasRules?.()).toBe(true)
    await second.cleanup()
    const third = await started()
    expect(await third.hasRules?.()).toBe(false)
    await third.close()
    // It made the tables, and ended before it wrote anything into them.
    expect(nft('list', 'tables')).toContain('table ip kpng')
    const fourth = await started()
    expect(await fourth.hasRules?.()).toBe(false)
    await fourth.close()
  })
})
