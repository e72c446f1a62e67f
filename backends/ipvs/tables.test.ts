import { families } from '@kpng/api'
import { FrontendTable } from '@kpng/dataplane'
import { enterNewNamespace, whySkipped } from '@kpng/linux/testing'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { change, fullSync } from '../../dataplane/testing/objects.js'
import { addresses, options as labOptions, labView } from '../nft/testing/cases.js'
import { applyRules } from './nft.js'
import { settingsOf } from './options.js'
import { placeOf } from './rules.js'
import { addressesByFamily, IpvsState } from './state.js'
import { Tables } from './tables.js'

const whyNot = whySkipped('tables of the IPVS backend', 'nft')
const { dataplane, names, masqueradeBit } = settingsOf({ ...labOptions, nodePortAddresses: ['all'] })
const { tableName } = names
const machine = { families, addresses: [] }
const own = [...addresses.node, ...addresses.otherNodeAddress]

describe.skipIf(whyNot !== undefined)('on a kernel', () => {
  beforeAll(enterNewNamespace)

  /** Tables that are written, and what removes a Service of theirs from the state. */
  async function written() {
    const view = labView()
    const table = new FrontendTable(dataplane)
    table.apply(view, fullSync, machine)
    const state = new IpvsState(table)
    state.rebuild({
      ...{ ownAddresses: new Set(own), nodePortAddresses: addressesByFamily(own) },
      ...{ schedulerOf: () => 'rr', serves: () => true },
    })
    const tables = await Tables.open({ tableName, masqueradeBit })
    onTestFinished(() => tables.close())
    await tables.replace(
      state,
      families.map((family) => placeOf(family, table.node, dataplane.detectLocal)),
    )
    const removed = (name: string) => {
      const { frontends } = table.apply(view, change(view, name, undefined), machine)
      return state.change(frontends.flatMap(({ before }) => before?.id ?? [])).elements
    }
    return { tables, removed, drift: () => tables.drift(state, families) }
  }

  test('what was written is no drift, and neither is a change of ours', async () => {
    const { tables, removed, drift } = await written()
    expect(await drift()).toBeUndefined()
    const elements = removed('exposed')
    expect(elements.IPv4.remove.length).toBeGreaterThan(5)
    await tables.change(elements, families)
    await applyRules('add table ip another\n')
    expect(await drift()).toBeUndefined()
  })

  test('tables are listed only if somebody else has changed nftables', async () => {
    const { tables, removed, drift } = await written()
    const unwritten = removed('exposed')
    expect(await drift()).toBeUndefined()
    await tables.change(removed('web'), families)
    expect(await drift()).toBeUndefined()
    await applyRules('add table ip a-third\n')
    expect(await drift()).toMatch(/has other elements/)
    await tables.change(unwritten, families)
    expect(await drift()).toBeUndefined()
  })

  test.each([
    ['a rule', `add rule ip ${tableName} input accept`, /other rules/],
    ['an element more', `add element ip ${tableName} addresses { 10.96.250.1 }`, /addresses has other elements/],
    ['an element less', `delete element ip ${tableName} addresses { 10.96.0.1 }`, /addresses lacks 10.96.0.1/],
    ['a flushed set', `flush set ip6 ${tableName} allowed-64`, /allowed-64 (has other elements|lacks)/],
    ['no rules', `flush table ip ${tableName}`, /other rules/],
    ['no table', `delete table ip6 ${tableName}`, /everything is gone in the table kpng-ipvs \(IPv6\)/],
    ['no table at all', 'flush ruleset', /everything is gone/],
  ])('notices %s, also with a change of ours after it', async (_what, text, reason) => {
    const { tables, removed, drift } = await written()
    await applyRules(`${text}\n`)
    expect(await drift()).toMatch(reason)
    if (reason.source.includes('gone')) return
    await tables.change(removed('exposed'), families)
    expect(await drift()).toMatch(reason)
  })
})
