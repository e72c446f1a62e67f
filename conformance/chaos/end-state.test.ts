import { outputOf } from '@kpng/linux'
import { whySkipped } from '@kpng/linux/testing'
import { expect, test } from 'vitest'
import type { Lab } from '../lab/lab.js'
import { rulesIn } from './end-state.js'

const whyNot = whySkipped('rules of both families, compared', 'nft', 'iptables-nft', 'unshare')

const add = {
  iptables: 'iptables-nft -t nat -A OUTPUT -p tcp -j DNAT --to-destination 10.244.1.1:8080',
  ip6tables: "ip6tables-nft -t nat -A OUTPUT -p tcp -j DNAT --to-destination '[fd00:244::1]:8080'",
}

/** The rules of a namespace in which a script ran before. */
const rulesAfter = (...commands: readonly string[]): Promise<string[]> => {
  const run: Lab['run'] = (_, program, args, { input = '' } = {}) =>
    outputOf('unshare', ['--net', program, ...args], { input: [...commands, input].join('\n'), limitMs: 60_000 })
  return rulesIn({ run })
}

test.skipIf(whyNot !== undefined)('which family was written first makes no difference', async () => {
  const rules = await rulesAfter(add.iptables, add.ip6tables)
  expect(await rulesAfter(add.ip6tables, add.iptables)).toEqual(rules)
  for (const endpoint of ['10.244.1.1:8080', '[fd00:244::1]:8080'])
    expect(rules).toContainEqual(expect.stringContaining(`dnat to ${endpoint}`))
})
