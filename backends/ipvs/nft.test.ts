import { type Family, families } from '@kpng/api'
import { FrontendTable } from '@kpng/dataplane'
import { enterNewNamespace, whySkipped } from '@kpng/linux/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { fullSync } from '../../dataplane/testing/objects.js'
import { addresses, options as labOptions, labView } from '../nft/testing/cases.js'
import { applyRules, readRules, readTable, recordedKeys, tableDrift, tableIn, tableNames } from './nft.js'
import { settingsOf } from './options.js'
import { placeOf, tableText } from './rules.js'
import { addressesByFamily, IpvsState } from './state.js'

// The rules on a real kernel, without IPVS: that the kernel takes them, and that what is read back is what was written.

const whyNot = whySkipped('rules of the IPVS backend', 'nft')
const { dataplane, names, masqueradeBit } = settingsOf({ ...labOptions, nodePortAddresses: ['all'] })
const machine = { families: ['IPv4', 'IPv6'], addresses: [] } as const
const own = [...addresses.node, ...addresses.otherNodeAddress]

function served() {
  const table = new FrontendTable(dataplane)
  table.apply(labView(), fullSync, machine)
  const state = new IpvsState(table)
  state.rebuild({
    ...{ ownAddresses: new Set(own), nodePortAddresses: addressesByFamily(own) },
    ...{ schedulerOf: () => 'rr', serves: () => true },
  })
  return { table, state }
}

describe.skipIf(whyNot !== undefined)('on a kernel', () => {
  beforeAll(enterNewNamespace)
  const { table, state } = served()
  const write = (family: Family) =>
    applyRules(
      tableText(placeOf(family, table.node, dataplane.detectLocal), state.elements(family), {
        ...{ tableName: names.tableName, masqueradeBit },
      }),
    )

  test.each(families)('%s: what was written is read back, and is no drift', async (family) => {
    await write(family)
    const read = await readTable(family, names.tableName)
    expect(tableDrift(read, await readRules(family, names.tableName), state, family)).toBeUndefined()
    const own = [...state.servers.values()].filter((server) => server.family === family)
    expect([...new Set(recordedKeys(read, family))].sort()).toEqual(own.map(({ key }) => key).sort())
  })

  test('a refused transaction says why and changes nothing', async () => {
    const before = await tableNames()
    const text = `add table ip another\nadd element ip nowhere servers { 10.0.0.1 . tcp . 80 }\n`
    await expect(applyRules(text)).rejects.toThrow(/nft refused a transaction: .*No such file.*Nothing was changed/)
    expect(await tableNames()).toEqual(before)
  })
})

test('reads what nft prints', () => {
  const { sets } = tableIn({
    nftables: [
      { set: { name: 'hosts', elem: ['10.0.0.1', { prefix: { addr: '10.1.0.0', len: 16 } }] } },
      {
        map: {
          name: 'verdicts',
          elem: [
            [{ concat: ['10.0.0.1', 'tcp', 80] }, { goto: { target: 'refuse' } }],
            ['a', { drop: null }],
          ],
        },
      },
      { map: { name: 'marks', elem: [[{ elem: { val: '10.0.0.1' } }, 1258291201]] } },
    ],
  })
  expect(Object.fromEntries([...sets].map(([name, entries]) => [name, [...entries]]))).toEqual({
    hosts: [
      ['10.0.0.1', ''],
      ['10.1.0.0/16', ''],
    ],
    verdicts: [
      ['10.0.0.1 . tcp . 80', 'goto refuse'],
      ['a', 'drop'],
    ],
    marks: [['10.0.0.1', '0x4b000001']],
  })
})
