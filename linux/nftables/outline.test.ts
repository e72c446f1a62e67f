import { spawnSync } from 'node:child_process'
import { silentLog } from '@kpng/api'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type Libc, loadLibc } from '../libc.js'
import { NETLINK_NETFILTER } from '../netlink/constants.js'
import { NetlinkSocket } from '../netlink/socket.js'
import { enterNewNamespace, whySkipped } from '../testing/index.js'
import { nodePortKey } from './field.js'
import { readOutline } from './outline.js'
import type { Ruleset } from './ruleset.js'
import type { SetShape } from './set.js'
import { drop, isIn, rule } from './statement.js'
import { removeTables } from './table-list.js'
import { Tables } from './tables.js'

const sets = new Map<string, SetShape>([['closed', { key: ['protocol', 'port'] }]])
const ruleset: Ruleset = {
  tableName: 'kpng',
  sets: { ip: sets, ip6: sets },
  chains: () => [{ name: 'close', rules: [rule(isIn(nodePortKey, 'closed'), drop)] }],
}

const nft = (...args: string[]) => expect(spawnSync('nft', args, { encoding: 'utf8' }).stderr).toBe('')

describe.skipIf(whySkipped('the outline of a table', 'nft') !== undefined)('the outline of a table', () => {
  let libc: Libc
  beforeAll(async () => {
    await enterNewNamespace()
    libc = await loadLibc()
  })
  afterEach(() => removeTables(() => true))

  const make = async () => (await Tables.open({ libc, families: ['ip'], ruleset, log: silentLog })).close()

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
    expect(await readOutline(new NetlinkSocket(libc, NETLINK_NETFILTER), 'ip', ruleset)).toBeUndefined()
  })

  test('is read again if somebody changed tables meanwhile, and counts if it is the same then', async () => {
    await make()
    const quiet = await readOutline(new NetlinkSocket(libc, NETLINK_NETFILTER), 'ip', ruleset)
    expect(quiet?.sets.size).toBe(3)
    const socket = new DisturbedSocket(libc, NETLINK_NETFILTER)
    expect(await readOutline(socket, 'ip', ruleset)).toEqual(quiet)
    expect(socket.disturbances).toBeGreaterThan(1)
  })

  test('that changes each time is refused, and never taken for a table that is not there', async () => {
    await make()
    const socket = new DisturbedSocket(libc, NETLINK_NETFILTER)
    socket.disturb = (count) => nft(`add chain ip kpng foreign-${count}`)
    await expect(readOutline(socket, 'ip', ruleset)).rejects.toThrow(
      'The table "ip kpng" changed each time it was read.',
    )
  })
})
