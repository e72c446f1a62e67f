import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '@kpng/api'
import { FrontendTable } from '@kpng/dataplane'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ChainDrift } from './drift.js'
import { settingsOf } from './options.js'
import { fullInput } from './restore.js'
import { tables } from './rule.js'
import { RuleState } from './rule-state.js'
import { parseSaved } from './save.js'
import { emptyRules, FakeIptables } from './testing/fake-iptables.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kpng-drift-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const settings = settingsOf()

/** A program that prints what `shown` says, and everything that is looked at. */
function watched(shown: () => string) {
  const program = join(folder, 'iptables')
  const rules = { ...settings, detectLocal: settings.dataplane.detectLocal, randomFully: true, counters: false }
  const state = new RuleState('IPv4', rules)
  const warnings: unknown[] = []
  const drift = new ChainDrift({
    programs: { IPv4: program, IPv6: program },
    states: new Map([['IPv4', state]]),
    names: settings.names,
    log: { ...silentLog, warn: (_, details) => void warnings.push(details) },
  })
  const print = () => {
    writeFileSync(join(folder, 'rules'), shown())
    writeFileSync(`${program}-save`, `#!/bin/sh\ncat ${folder}/rules\n`, { mode: 0o755 })
  }
  const look = () => {
    print()
    return drift.look()
  }
  const afterFullSync = () => {
    print()
    return drift.afterFullSync()
  }
  return { state, warnings, look, afterFullSync, program }
}

test('jumps that are not to be seen right after everything was written are named once, and no longer count', async () => {
  const { warnings, look, afterFullSync, program } = watched(() => emptyRules)
  await afterFullSync()
  expect(warnings).toEqual([])
  const reason = await look()
  expect(reason).toMatch(/^the jump from \w+ to KUBE-.* is gone$/)
  await afterFullSync()
  expect(warnings).toEqual([expect.objectContaining({ program, reason })])
  expect(await look()).toBeUndefined()
})

test('what an unknown version prints in another way is sealed after a write, and changes of it are noticed', async () => {
  const fake = new FakeIptables()
  let print = (text: string) => text
  const { state, warnings, look, afterFullSync } = watched(() => print(textOf(fake)))
  state.rebuild(new FrontendTable())
  fake.restore(fullInput(state.chains, settings.names, fake.saved))
  expect(await look()).toBeUndefined()
  print = (text) => text.replaceAll('--ctstate INVALID', '--state INVALID')
  expect(await look()).toContain('KUBE-FORWARD in the table filter has other rules')
  await afterFullSync()
  expect(warnings).toHaveLength(1)
  expect(await look()).toBeUndefined()
  print = (text) => text.replaceAll('--ctstate INVALID', '--state NEW')
  expect(await look()).toContain('KUBE-FORWARD')
})

function textOf(fake: FakeIptables): string {
  const parts = tables.map((table) => {
    const { builtIn } = parseSaved(emptyRules)[table]
    const chains = [...fake.chains(table)]
    const names = chains.map(([chain]) => `:${chain} ${builtIn.has(chain) ? 'ACCEPT' : '-'} [0:0]\n`)
    const rules = chains.flatMap(([chain, each]) => each.map((rule) => `-A ${chain} ${rule}\n`))
    return `*${table}\n${[...names, ...rules].join('')}COMMIT\n`
  })
  return parts.join('')
}
