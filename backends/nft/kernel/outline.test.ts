import { type Libc, loadLibc, NETLINK_NETFILTER, NetlinkSocket } from '@kpng/linux'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { fullSync, view } from '../../../dataplane/testing/objects.js'
import { enterNewNamespace, whyNoKernel } from '../testing/namespace.js'
import { nft, RunningBackends } from '../testing/running.js'
import { readOutline } from './outline.js'

describe.skipIf(whyNoKernel() !== undefined)('the outline of a table', () => {
  const backends = new RunningBackends()
  let libc: Libc
  beforeAll(async () => {
    await enterNewNamespace()
    libc = await loadLibc()
  })
  afterEach(() => backends.end())

  /** A socket that lets somebody change tables whenever so many messages have been sent. */
  class DisturbedSocket extends NetlinkSocket {
    #sent = 0
    disturbances = 0

    override async send(bytes: Buffer): Promise<void> {
      await super.send(bytes)
      if (++this.#sent % 3 !== 0 || this.disturbances === 0) return
      this.disturbances--
      nft('add table ip foreign; delete table ip foreign')
    }
  }

  test('is undefined only when there is no table', async () => {
    expect(
      await readOutline(new NetlinkSocket(libc, NETLINK_NETFILTER), { family: 'ip', name: 'kpng' }),
    ).toBeUndefined()
  })

  test('that changed while it was read is read again', async () => {
    await (await backends.start({ ipv6: false })).sync(view([]), fullSync)
    const quiet = await readOutline(new NetlinkSocket(libc, NETLINK_NETFILTER), { family: 'ip', name: 'kpng' })
    expect(quiet?.sets.size).toBeGreaterThan(10)
    const socket = new DisturbedSocket(libc, NETLINK_NETFILTER)
    socket.disturbances = 2
    expect(await readOutline(socket, { family: 'ip', name: 'kpng' })).toEqual(quiet)
    expect(socket.disturbances).toBe(0)
  })

  test('that changes each time is refused, and never taken for a table that is not there', async () => {
    await (await backends.start({ ipv6: false })).sync(view([]), fullSync)
    const socket = new DisturbedSocket(libc, NETLINK_NETFILTER)
    socket.disturbances = 100
    await expect(readOutline(socket, { family: 'ip', name: 'kpng' })).rejects.toThrow(
      'The table "ip kpng" changed each time it was read.',
    )
  })
})
