import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { change, endpoint, fullSync, ips, type TestView, view } from '../../dataplane/testing/objects.js'
import { NftSocket } from '../../linux/nftables/socket.js'
import { enterNewNamespace, whyNoKernel } from './testing/namespace.js'
import { nft, RunningBackends } from './testing/running.js'

const manyServices = (count: number): TestView =>
  view(
    Array.from({ length: count }, (_, index) => ({
      name: `s${index}`,
      ips: { clusterIps: ips(`10.96.${index >> 8}.${index & 255}`) },
      endpoints: [endpoint(`10.1.${index >> 8}.${index & 255}`)],
    })),
  )

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe.skipIf(whyNoKernel() !== undefined)('during a sync', () => {
  const backends = new RunningBackends()
  beforeAll(() => enterNewNamespace())
  afterEach(async () => {
    vi.restoreAllMocks()
    await backends.end()
  })

  /** Does something right after the writer's next transaction, before the sync goes on. */
  function afterTransaction(intrude: () => void): void {
    const transact = NftSocket.prototype.transact
    vi.spyOn(NftSocket.prototype, 'transact').mockImplementation(async function (this: NftSocket, ...args) {
      await transact.apply(this, args)
      intrude()
    })
  }

  test.each([10, 2000])('of %d services somebody changes our table: noticed (66)', async (services) => {
    const of = manyServices(services)
    const backend = await backends.start({ ipv6: false })
    afterTransaction(() => nft('flush', 'set', 'ip', 'kpng', 'cluster-ips'))
    await backend.sync(of, fullSync)
    vi.restoreAllMocks()
    await vi.waitFor(() => expect(backends.reasons.length).toBeGreaterThan(0), { timeout: 90_000 })
    await backend.sync(of, fullSync)
    expect(nft('list', 'set', 'ip', 'kpng', 'cluster-ips').match(/10\.96\./g)).toHaveLength(services)
  })

  test.each([10, 2000])('of %d services nobody changes anything: nothing is noticed', async (services) => {
    const of = manyServices(services)
    const backend = await backends.start({ ipv6: false })
    await backend.sync(of, fullSync)
    await backend.sync(of, change(of, 's7', undefined))
    await backend.sync(of, fullSync)
    await pause(100)
    expect(backends.reasons).toEqual([])
  })

  test('somebody changes a table of his own: not ours to repair', async () => {
    const of = manyServices(10)
    const backend = await backends.start({ ipv6: false })
    afterTransaction(() => nft('add table ip foreign; delete table ip foreign'))
    await backend.sync(of, fullSync)
    await pause(100)
    expect(backends.reasons).toEqual([])
  })
})
