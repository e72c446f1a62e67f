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
    disturb = (_count: number) => nft('add table ip foreign; delete table ip foreign')

    override async send(bytes: Buffer): Promise<void> {
      await super.send(bytes)
      if (++this.#sent % 3 === 0) this.disturb(++this.disturbances)
    }
  }

  test('is undefined only when there is no table', async () => {
    expect(
      await readOutline(new NetlinkSocket(libc, NETLINK_NETFILTER), { family: 'ip', name: 'kpng' }),
    ).toBeUndefined()
  })

  test('is read again if somebody changed tables meanwhile, and counts if it is the same then', async () => {
    await (await backends.start({ ipv6: false })).sync(view([]), fullSync)
    const quiet = await readOutline(new NetlinkSocket(libc, NETLINK_NETFILTER), { family: 'ip', name: 'kpng' })
    expect(quiet?.sets.size).toBeGreaterThan(10)
    const socket = new DisturbedSocket(libc, NETLINK_NETFILTER)
    expect(await readOutline(socket, { family: 'ip', name: 'kpng' })).toEqual(quiet)
    expect(socket.disturbances).toBeGreaterThan(1)
  })

  test('that changes each time is refused, and never taken for a table that is not there', async () => {
    await (await backends.start({ ipv6: false })).sync(view([]), fullSync)
    const socket = new DisturbedSocket(libc, NETLINK_NETFILTER)
    socket.disturb = (count) => nft(`add chain ip kpng foreign-${count}`)
    await expect(readOutline(socket, { family: 'ip', name: 'kpng' })).rejects.toThrow(
      'The table "ip kpng" changed each time it was read.',
    )
  })
})
